"""Lists that fit a narrow terminal: no id and no word is broken, and a text is shown by its beginning.

A record whose columns do not fit beside each other takes several lines, all but the first of them indented.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placet.cli import safe
from placet.cli.rows import rows_of
from placet.cli.session import console, print_table, told

if TYPE_CHECKING:
    from rich.text import Text

LINE_CHARS = 100
# In fewer columns, or if the others leave it less than that, a text would break words: it gets its own lines.
NARROW = 90
TEXT_CHARS = 40
# Between two columns, and before the further lines of a record.
GAP = 2
NO_CELL = "-"


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


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], empty: str, order: Sequence[int] = ()
) -> None:
    """Print a table of ids and short words; on several lines a record if there is not room for one.

    Args:
        columns: their heads.
        rows: the cells, as `print_table` takes them.
        empty: the text if there are no rows.
        order: the columns by their numbers, as they follow each other on several lines; as given if it is empty.
    """
    screen = console()
    cells = [columns, *_shown(rows)]
    if rows and _span(_widths(cells)) > screen.width:
        numbers = order or range(len(columns))
        ordered = [[row[number] for number in numbers] for row in (columns, *rows)]
        _print_narrow(ordered[0], ordered[1:])
        return
    print_table(columns, rows, empty)


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


def _span(widths: Sequence[int]) -> int:
    """The columns of a terminal that cells of these widths take beside each other."""
    return sum(widths) + GAP * (len(widths) - 1)


def _print_narrow(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], texts: Sequence[Text] | None = None
) -> None:
    """The records, each on as many lines as its cells need, with its text below them."""
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    cells = [list(columns), *_shown(rows)]
    widths = _widths(cells)
    parts = _parts(widths, screen.width)

    def show(row: Sequence[str], style: str = "") -> None:
        for line in _lines_of(row, widths, parts):
            for part in _unbroken(line, screen.width):
                screen.print(Text(part, style=style), soft_wrap=True)

    show(cells[0], "bold")
    for row, text in zip(cells[1:], texts or [Text()] * len(rows), strict=True):
        show(row)
        if text:
            screen.print(Padding(text, (0, 0, 0, GAP), expand=False))


def _parts(widths: Sequence[int], width: int) -> list[slice]:
    """The columns that stand beside each other on each line of a record; each line has one at least."""
    ends = [0]
    for number in range(1, len(widths)):
        margin = GAP if ends[-1] else 0
        if margin + _span(widths[ends[-1] : number + 1]) > width:
            ends.append(number)
    return [slice(begin, end) for begin, end in zip(ends, [*ends[1:], len(widths)], strict=True)]


def _unbroken(line: str, width: int) -> list[str]:
    """A line, broken between words if it is too wide: none of an agent's may look like the begin of a record.

    An id that is wider than the terminal is left whole: the terminal breaks it, and a copy of it does not.
    """
    from rich.cells import cell_len

    said = line.strip()
    if cell_len(line) <= width or " " not in said:
        return [line]
    margin = " " * (2 * GAP)
    return [margin + row for row in rows_of(said, max(width - len(margin), GAP), at_words=True)]


def _lines_of(row: Sequence[str], widths: Sequence[int], parts: Sequence[slice]) -> list[str]:
    """The lines of a record, to the last one that has a cell; a line without one has a dash."""
    from rich.cells import set_cell_size

    gap = " " * GAP
    lines = [gap.join(map(set_cell_size, row[part], widths[part])).rstrip() for part in parts]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return [f"{gap if number else ''}{line or NO_CELL}" for number, line in enumerate(lines)]
