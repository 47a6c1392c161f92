"""A progress bar for long work."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn

from placet.cli.session import console


def bar(time: ProgressColumn, *, show: bool, transient: bool = False) -> Progress:
    """A bar on standard error: shown if it is wanted and standard error is a terminal.

    Args:
        time: the column that shows the time.
        show: whether it is wanted.
        transient: whether it is removed at the end.
    """
    shown_on = console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), time
    is_shown = show and shown_on.is_terminal
    return Progress(*columns, console=shown_on, disable=not is_shown, transient=transient)
