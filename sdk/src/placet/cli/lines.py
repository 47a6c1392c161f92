"""Lists with a text of any length in each row: its beginning is shown, below the row if the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placet.cli import safe
from placet.cli.session import console, print_table, told

if TYPE_CHECKING:
    from rich.text import Text

LINE_CHARS = 100
# In fewer columns, or if the others leave it less than that, a text would break words: it gets its own lines.
NARROW = 90
TEXT_CHARS = 40
# Between two columns.
GAP = 2


def begun(text: str) -> str:
    """The beginning of a text on one line, marked if it is cut."""
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
        texts: one for each row, commonly short enough for a line (`begun`).
        empty: the text if there are no rows.
    """
    if rows and _is_narrow(columns, rows, texts):
        _print_narrow(columns, rows, texts)
        return
    print_table((*columns, title), [(*row, text) for row, text in zip(rows, texts, strict=True)], empty)


def _is_narrow(columns: Sequence[str], rows: Sequence[Sequence[Any]], texts: Sequence[Text]) -> bool:
    """Returns True if the texts do not fit beside the other columns."""
    width = console().width
    wanted = min(max(text.cell_len for text in texts), TEXT_CHARS)
    widths = _widths([columns, *_shown(rows)])
    return width < NARROW or sum(widths) + GAP * len(widths) + wanted > width


def _shown(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [[safe.escaped(str(told(cell))) for cell in row] for row in rows]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column."""
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*cells, strict=True)]


def _print_narrow(columns: Sequence[str], rows: Sequence[Sequence[Any]], texts: Sequence[Text]) -> None:
    """The table with each text beside its row, or below it if the terminal is too narrow."""
    from rich.cells import set_cell_size
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    cells = [columns, *_shown(rows)]
    widths = _widths(cells)
    fits = sum(widths) + GAP * (len(widths) - 1) <= screen.width
    lines = [
        "  ".join(map(set_cell_size, row, widths)).rstrip() if fits else "  ".join(filter(None, row))
        for row in cells
    ]
    screen.print(Text(lines[0], style="bold"))
    for line, text in zip(lines[1:], texts, strict=True):
        screen.print(Text(line))
        if text:
            screen.print(Padding(text, (0, 0, 0, 2)))
