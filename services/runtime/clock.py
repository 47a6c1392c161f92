"""An estimate of the log's time: this process's clock, corrected by the broker's timestamps."""

import time
from collections.abc import Callable
from dataclasses import dataclass


def wall_ms() -> int:
    """This process's clock, milliseconds since the epoch. It decides nothing."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class LogClock:
    """Estimates the log's time, only to know when to nudge.

    A record that is read late makes the log look behind, never ahead, so the largest difference seen is the best
    estimate; a nudge of one's own, read at once, gives it exactly.
    """

    local_ms: Callable[[], int] = wall_ms
    _skew_ms: int | None = None

    @property
    def known(self) -> bool:
        """True if a record has shown the log's time."""
        return self._skew_ms is not None

    def now_ms(self) -> int:
        """The current estimate of the log's time."""
        return self.local_ms() + (self._skew_ms or 0)

    def observe(self, append_time_ms: int, exact: bool = False) -> None:
        """Update the estimate from a record that was just read."""
        skew_ms = append_time_ms - self.local_ms()
        if exact or self._skew_ms is None or skew_ms > self._skew_ms:
            self._skew_ms = skew_ms
