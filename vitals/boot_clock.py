"""A clock for how old something is."""

from __future__ import annotations

import time


def seconds_since_boot() -> float:
    """Seconds that also pass while the machine is suspended, where the system has such a clock.

    What was read before a suspension is old after it, though no process has run meanwhile.
    """
    of_boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if of_boot is None else time.clock_gettime(of_boot)
