"""The time by which a partition is decided: the broker's timestamps, as far as they are credible.

`now` of a decision stays in the log for ever and never runs backwards. So after a timestamp that is hours ahead, the
partition's time would stand still for hours, and a hold would stay open, and could be approved, long after its
deadline. Therefore two clocks must agree, the broker's and this decider's, to within `CLOCK_LEAD_MAX_MS`:

1. a timestamp counts if it is no further than that ahead of this process's clock or behind the newest decision;
2. if one does not, the broker is asked for its present time, by a nudge that it stamps. If the two clocks agree
   again, the record counts as appended at the time of the next credible record: later than it was, never earlier;
3. as long as they do not agree, or the log's own time is ahead, nothing is decided and the writer reports why.

It cannot be known which of the clocks is wrong, so a decider whose own clock is wrong decides nothing either.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from log.places import TopicPartition
from log.port import Log
from schemas.limits import CLOCK_LEAD_MAX_MS
from schemas.record import RawRecord
from schemas.spans import span
from schemas.time_question import time_question
from services.runtime.clock import LogClock

ASK_AGAIN_S = 1.0
# Without a reason for doubt: some partition of a worker asks this often, in turn.
ASK_EVERY_S = 5.0

logger = logging.getLogger(__name__)


def _loop_time_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class LogTime:
    """One writer's view of the log's time.

    Attributes:
        clock: this process's clock, with an estimate of the broker's.
        ask: appends a nudge that decides nothing, and returns the broker's timestamp.
        turn: the partition's place among the `turns` that ask one after the other.
        wrong: why nothing is decided now; empty if nothing is wrong.
    """

    clock: LogClock
    ask: Callable[[], Awaitable[int]]
    turn: int = 0
    turns: int = 1
    monotonic_s: Callable[[], float] = _loop_time_s
    wrong: str = ""
    _ask_at_s: float = -math.inf
    _instead: dict[int, int] = field(default_factory=dict)

    def of(self, raw: RawRecord, last_ms: int) -> int | None:
        """The time at which a command was appended; None while in doubt.

        Args:
            raw: the next command.
            last_ms: the time of the newest decision.
        """
        if self._is_credible(raw.timestamp_ms, last_ms):
            return raw.timestamp_ms
        return self._instead.get(raw.offset)

    def taken(self, raw: RawRecord) -> None:
        """A command was taken from the inbox."""
        self._instead.pop(raw.offset, None)

    def wait_s(self) -> float:
        """The time until the clocks must be compared again."""
        return max(0.0, self._ask_at_s - self.monotonic_s())

    async def settle(self, inbox: Sequence[RawRecord], last_ms: int) -> None:
        """Check whether decisions can be made now, and determine when doubtful commands were appended.

        Args:
            inbox: the commands that wait to be decided.
            last_ms: the time of the newest decision.

        Raises:
            LogError: the broker cannot be asked.
        """
        doubtful = bool(inbox) and self.of(inbox[0], last_ms) is None
        if self.monotonic_s() < self._ask_at_s and (self.wrong or not doubtful):
            return
        ahead_ms = last_ms - self.clock.local_ms()
        if ahead_ms > CLOCK_LEAD_MAX_MS:
            self._find(f"the log's time is {span(ahead_ms)} ahead of this decider's clock")
        else:
            self._find(await self._compare())
        if self.wrong:
            self._ask_at_s = self.monotonic_s() + ASK_AGAIN_S
        else:
            self._bound(inbox, last_ms)

    async def _compare(self) -> str:
        """Ask the broker for the time; returns what is wrong, if anything."""
        first = self._ask_at_s == -math.inf
        before_ms = self.clock.local_ms()
        stamp_ms = await self.ask()
        after_ms = self.clock.local_ms()
        turns = self.turn + 1 if first else self.turns
        self._ask_at_s = self.monotonic_s() + ASK_EVERY_S * turns
        if stamp_ms > after_ms + CLOCK_LEAD_MAX_MS:
            return f"the broker's clock is {span(stamp_ms - after_ms)} ahead of this decider's"
        if stamp_ms < before_ms - CLOCK_LEAD_MAX_MS:
            return f"the broker's clock is {span(before_ms - stamp_ms)} behind this decider's"
        self.clock.observe(stamp_ms, exact=True)
        return ""

    def _bound(self, inbox: Sequence[RawRecord], last_ms: int) -> None:
        """Store the time by which each doubtful command had been appended: the next credible timestamp, or now."""
        by_ms = self.clock.now_ms()
        for raw in reversed(inbox):
            if self._is_credible(raw.timestamp_ms, last_ms):
                by_ms = min(by_ms, raw.timestamp_ms)
            else:
                self._instead[raw.offset] = by_ms

    def _is_credible(self, stamp_ms: int, last_ms: int) -> bool:
        return last_ms - CLOCK_LEAD_MAX_MS <= stamp_ms <= self.clock.local_ms() + CLOCK_LEAD_MAX_MS

    def _find(self, wrong: str) -> None:
        if wrong and not self.wrong:
            logger.critical(
                "nothing is decided: %s; correct the clocks, which may differ by at most %d ms",
                wrong,
                CLOCK_LEAD_MAX_MS,
            )
        elif self.wrong and not wrong:
            logger.warning("the clocks agree again: deciding continues")
        self.wrong = wrong


def asking(log: Log, tp: TopicPartition, partitions: int) -> Callable[[], Awaitable[int]]:
    """Returns a function that asks a commands partition's broker for the time, with a nudge of no existing execution.

    Args:
        log: the log of the partition.
        tp: the partition.
        partitions: the number of partitions.
    """
    question = time_question(tp.partition, partitions)

    async def ask() -> int:
        return await log.send_stamped(tp, question)

    return ask
