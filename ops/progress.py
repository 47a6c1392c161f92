"""How far a command has read the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import TimeRemainingColumn

from placet.cli.progress import bar


@contextmanager
def reading_the_log(*, show: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal, and what moves it: records read, of how many."""
    with bar(TimeRemainingColumn(), show=show) as shown:
        task = shown.add_task("reading the log", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
