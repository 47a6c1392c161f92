"""How far a benchmark is, for who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ops.commands.common import print_line
from placet.cli.session import console


@contextmanager
def progress_shown(title: str, *, show: bool) -> Iterator[Callable[[str], None]]:
    """A line that moves on a terminal, a line for each step elsewhere."""
    screen = console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=screen, disable=not show, transient=True) as progress:
        task = progress.add_task(title)

        def report(text: str) -> None:
            progress.update(task, description=f"{title}: {text}")
            if show and not screen.is_terminal:
                print_line(f"{title}: {text}", err=True)

        yield report
