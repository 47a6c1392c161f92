"""An asynchronous command that a signal ends in order: it is cancelled, so that it ends what it has begun."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

from ops.errors import EXIT_SIGNALLED

Found = TypeVar("Found")
# SIGINT is asyncio's own.
CANCELLING = (signal.SIGTERM, signal.SIGHUP)


def run_until_signalled(command: Coroutine[Any, Any, Found]) -> Found:
    """Run a command to its end.

    Raises:
        typer.Exit: SIGTERM or SIGHUP ended it: 128 and the signal's number.
    """
    ended_by: list[int] = []

    async def cancellable() -> Found:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end(number: int) -> None:
            # Once: another must not keep it from ending what it has begun.
            if task is not None and not ended_by:
                ended_by.append(number)
                task.cancel()

        for number in CANCELLING:
            # Ignored under nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        return await command

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        if not ended_by:
            raise
        raise typer.Exit(EXIT_SIGNALLED + ended_by[0]) from None
