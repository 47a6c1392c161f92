"""The console of all commands: how wide it is, and that no line of a table ends in blanks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

# Wider than any table: where the output is no terminal, each record is on one line.
UNBOUNDED = 1_000_000


class Screen(Console):
    """A terminal's console, or that of a file or pipe, which is as wide as `COLUMNS` says, or as its tables are."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if not self.is_terminal:
            self.width = _columns() or UNBOUNDED

    @property
    def is_unbounded(self) -> bool:
        """True if nothing says how wide the output is."""
        return self.width >= UNBOUNDED

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print; what is laid out in columns, or broken into lines, is printed without the blanks that end these."""
        if (
            len(objects) == 1
            and isinstance(objects[0], Table | Padding | Text)
            and not settings.get("soft_wrap")
        ):
            lines = self.render_lines(objects[0], pad=False)
            super().print(Segments(list(_trimmed(lines))), end="", soft_wrap=True)
            return
        super().print(*objects, **settings)


def _columns() -> int:
    """The width that the environment gives; 0 if it gives none."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isascii() and said.isdigit() else 0


def _trimmed(lines: Iterable[list[Segment]]) -> Iterable[Segment]:
    for line in lines:
        kept = list(line)
        while kept and not kept[-1].text.rstrip(" "):
            kept.pop()
        if kept:
            last = kept.pop()
            kept.append(Segment(last.text.rstrip(" "), last.style, last.control))
        yield from kept
        yield Segment.line()
