"""A run that a signal ends removes what it made, undisturbed by further signals."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ops.bench.load import BenchFailedError
from ops.errors import EXIT_SIGNALLED

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedError(BenchFailedError):
    """A signal ended the comparison."""

    def __init__(self, number: int) -> None:
        super().__init__("The comparison was stopped; nothing of it is left running or checked out.")
        self.exit_code = EXIT_SIGNALLED + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let the first signal end the block as an error, and ignore others while the block cleans up.

    Raises:
        StoppedError: a signal came.
    """

    def end(number: int, _: FrameType | None) -> None:
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)
        raise StoppedError(number)

    before = {one: signal.signal(one, end) for one in ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
