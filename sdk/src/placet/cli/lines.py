"""Lists with a text of any length in each row: its beginning, below the row where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placet.cli import safe
from placet.cli.session import console, print_table, told

if TYPE_CHECKING:
    from rich.text import Text

LINE_CHARS = 100
# In fewer columns a text would break words: it gets lines of its own.
NARROW = 90


def begun(text: str) -> str:
    """The beginning of a text on one line; that it goes on is seen."""
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"


def print_with_texts(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str, texts: Sequence[Text], empty: str
) -> None:
    """Print a table whose last column is a text, or say that there is nothing.

    Args:
        columns: the heads of the others.
        rows: the cells of the others, as `print_table` takes them.
        title: the head of the texts' column.
        texts: one for each row, short enough to be printed whole (`begun`).
        empty: what is said where there is no row.
    """
    if rows and console().width < NARROW:
        _print_narrow(columns, rows, texts)
        return
    print_table((*columns, title), [(*row, text) for row, text in zip(rows, texts, strict=True)], empty)


def _print_narrow(columns: Sequence[str], rows: Sequence[Sequence[Any]], texts: Sequence[Text]) -> None:
    """The table with each text below its row; side by side, as far as the terminal is wide enough for that."""
    from rich.cells import cell_len, set_cell_size
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    cells = [columns, *([safe.escaped(str(told(cell))) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    fits = sum(widths) + 2 * (len(widths) - 1) <= screen.width
    lines = [
        "  ".join(map(set_cell_size, row, widths)).rstrip() if fits else "  ".join(filter(None, row))
        for row in cells
    ]
    screen.print(Text(lines[0], style="bold"))
    for line, text in zip(lines[1:], texts, strict=True):
        screen.print(Text(line))
        if text:
            screen.print(Padding(text, (0, 0, 0, 2)))
