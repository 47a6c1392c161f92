"""The log's time as one gateway can tell it: the broker's stamp of something that it appended, and what passed since.

A lease ends by the log's time, and this machine's clock may be wrong. So whatever is compared with a time of the log
is compared with this one, which never lags behind it:

1. a record that was asked for at some moment was stamped at that moment or later;
2. since then the broker's clock has gone as far as the machine has, also while this process was stopped.

So it is ahead by the time that the append took, at most: a leave to run ends a little early, never late.
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

# Linux: it counts also while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _running_s() -> float:
    return time.clock_gettime(_CLOCK)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Moment(NamedTuple):
    """When something was asked: by a clock that nobody sets, and by this machine's."""

    running_s: float
    wall_ms: int


@dataclass(slots=True)
class LogTime:
    """What a gateway knows of the log's time.

    Attributes:
        running_s: seconds of a clock that nobody sets and that goes on while this process is stopped.
        wall_ms: this machine's clock.
        wrong: how far that one is off, where that is more than deciders bear; else empty.
    """

    running_s: Callable[[], float] = _running_s
    wall_ms: Callable[[], int] = _wall_ms
    wrong: str = ""
    _asked_at_s: float = -math.inf
    _stamp_ms: int | None = None

    @property
    def known(self) -> bool:
        """Whether the broker has told its time yet."""
        return self._stamp_ms is not None

    def moment(self) -> Moment:
        """Now, to be taken before the broker is asked."""
        return Moment(self.running_s(), self.wall_ms())

    def learn(self, asked: Moment, stamp_ms: int) -> None:
        """The broker has stamped what was asked at a moment; of several answers the newest question's counts."""
        if asked.running_s < self._asked_at_s:
            return
        self._asked_at_s, self._stamp_ms = asked.running_s, stamp_ms
        self.wrong = _difference(asked.wall_ms, self.wall_ms(), stamp_ms)

    def now_ms(self) -> int:
        """The log's time now, or a little later.

        Raises:
            Problem: 503, the broker has not told it yet.
        """
        if self._stamp_ms is None:
            raise Problem(
                Refusal.UNAVAILABLE, "Kafka has not told its time yet: try again in a moment", retry_after=1
            )
        return self._stamp_ms + math.ceil((self.running_s() - self._asked_at_s) * 1000)


def _difference(before_ms: int, after_ms: int, stamp_ms: int) -> str:
    if before_ms > stamp_ms + CLOCK_LEAD_MAX_MS:
        return f"its clock is {span(before_ms - stamp_ms)} ahead of Kafka's"
    if after_ms < stamp_ms - CLOCK_LEAD_MAX_MS:
        return f"its clock is {span(stamp_ms - after_ms)} behind Kafka's"
    return ""
