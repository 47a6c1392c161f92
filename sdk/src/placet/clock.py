"""The clock by which a lease is measured: it also counts the time that the machine sleeps.

`time.monotonic()` stands still while a Linux machine or a Mac sleeps: a laptop that was closed for an hour would take
a lease that ended meanwhile for a fresh one.
"""

from __future__ import annotations

import sys
import time


def _clock_id() -> int | None:
    """The system's clock that counts sleep; None where `time.monotonic()` does, as on Windows."""
    if sys.platform == "darwin":
        # By clock_gettime(3) of macOS, this one goes on in sleep, unlike CLOCK_UPTIME_RAW and mach_absolute_time.
        return time.CLOCK_MONOTONIC
    return getattr(time, "CLOCK_BOOTTIME", None)


_ID = _clock_id()


def now() -> float:
    """Seconds since a moment that stays the same while this process lives; the clock is never set back."""
    return time.monotonic() if _ID is None else time.clock_gettime(_ID)
