"""The log's time in one gateway: the broker's timestamp of an appended record, and the time that has passed since.

A lease ends by the log's time, and this machine's clock may be wrong. So every comparison with a time of the log
uses this time, which never lags behind the log's:

1. a record that was requested at some moment was stamped at that moment or later;
2. since then the broker's clock has advanced as far as this machine's, also while this process was stopped.

So it is ahead by at most the time that the append took: a permission to run ends a little early, never late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gateway.problems import Problem
from schemas.limits import CLOCK_LEAD_MAX_MS
from schemas.refusals import Refusal
from schemas.spans import span

# Linux: this clock also counts while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _running_s() -> float:
    return time.clock_gettime(_CLOCK)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Moment(NamedTuple):
    """The moment of a request: by a clock that is never set, and by this machine's clock."""

    running_s: float
    wall_ms: int


@dataclass(slots=True)
class LogTime:
    """The log's time as far as a gateway knows it.

    Attributes:
        running_s: the seconds of a clock that is never set and that runs on while this process is stopped.
        wall_ms: this machine's clock.
        wrong: the error of `wall_ms`, if it is more than deciders tolerate; else empty.
    """

    running_s: Callable[[], float] = _running_s
    wall_ms: Callable[[], int] = _wall_ms
    wrong: str = ""
    _asked_at_s: float = -math.inf
    _stamp_ms: int | None = None

    @property
    def known(self) -> bool:
        """True if the broker's time is known."""
        return self._stamp_ms is not None

    def moment(self) -> Moment:
        """Return the present moment, to be taken before the broker is called."""
        return Moment(self.running_s(), self.wall_ms())

    def learn(self, asked: Moment, stamp_ms: int) -> None:
        """Take in the broker's timestamp for a request made at a moment; only that of the newest request counts."""
        if asked.running_s < self._asked_at_s:
            return
        self._asked_at_s, self._stamp_ms = asked.running_s, stamp_ms
        self.wrong = _difference(asked.wall_ms, self.wall_ms(), stamp_ms)

    def now_ms(self) -> int:
        """Return the log's time now, or a slightly later time.

        Raises:
            Problem: 503, the broker's time is not known yet.
        """
        if self._stamp_ms is None:
            raise Problem(
                Refusal.UNAVAILABLE, "Kafka's time is not known yet: try again in a moment", retry_after=1
            )
        return self._stamp_ms + math.ceil((self.running_s() - self._asked_at_s) * 1000)


def _difference(before_ms: int, after_ms: int, stamp_ms: int) -> str:
    if before_ms > stamp_ms + CLOCK_LEAD_MAX_MS:
        return f"its clock is {span(before_ms - stamp_ms)} ahead of Kafka's"
    if after_ms < stamp_ms - CLOCK_LEAD_MAX_MS:
        return f"its clock is {span(stamp_ms - after_ms)} behind Kafka's"
    return ""
