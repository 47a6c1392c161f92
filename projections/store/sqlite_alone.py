"""One process at a time opens the SQLite view of a directory: two that create a new one would damage each other's."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOK_EVERY_S = 0.02


@contextmanager
def alone_in(directory: Path, within_s: float) -> Iterator[None]:
    """Lock a directory against other processes that open views in it.

    The directory itself is locked, so that no file is left in it; the kernel releases the lock when the process ends.

    Args:
        directory: that of the view's file.
        within_s: how long to wait for another process.

    Raises:
        OSError: it cannot be opened, or another process does not release it (`TimeoutError`).
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, time.monotonic() + within_s)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError("another process has been opening the views for too long") from None
            time.sleep(LOOK_EVERY_S)
        else:
            return
