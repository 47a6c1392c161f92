"""The time that a partition is decided by: the broker's stamps, as far as they can be true.

`now` of a decision is in the log for ever and never runs backwards. So a stamp that is hours ahead would let the
partition's time stand still for hours afterwards, and a hold would be open, and be approved, long after its deadline.
Therefore two clocks must agree, the broker's and this decider's, to within `CLOCK_LEAD_MAX_MS`:

1. a stamp counts if it is no further ahead of this process's clock, and no further behind the newest decision;
2. where one does not, the broker is asked for the time now, by a nudge that it stamps. If the two clocks agree again,
   the record counts as appended when the next believable one was: later than it was, never earlier;
3. while they do not agree, or the log's own time is ahead, nothing is decided and the writer says why.

Neither clock can be told to be the wrong one, so a decider whose own clock is wrong decides nothing either.
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
# Without a reason to doubt: so often some partition of a worker asks, each in its turn.
ASK_EVERY_S = 5.0

logger = logging.getLogger(__name__)


def _loop_time_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class LogTime:
    """What one writer believes of the log's time.

    Attributes:
        clock: this process's clock, and what it knows of the broker's.
        ask: appends a nudge that decides nothing, and answers with the broker's stamp.
        turn: of the partition among `turns` that ask one after the other.
        wrong: why nothing is decided now; empty while all is well.
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
        """When a command was appended; None while that is in doubt.

        Args:
            raw: the next command.
            last_ms: the time of the newest decision.
        """
        if self._is_credible(raw.timestamp_ms, last_ms):
            return raw.timestamp_ms
        return self._instead.get(raw.offset)

    def taken(self, raw: RawRecord) -> None:
        """A command was taken out of the inbox."""
        self._instead.pop(raw.offset, None)

    def wait_s(self) -> float:
        """How long until the time is to be looked at again."""
        return max(0.0, self._ask_at_s - self.monotonic_s())

    async def settle(self, inbox: Sequence[RawRecord], last_ms: int) -> None:
        """Look whether decisions may be made now, and when doubtful commands were appended.

        Args:
            inbox: what waits to be decided.
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
        """Ask the broker for the time; what is wrong, if anything."""
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
        """Note by when each doubtful command had been appended: by the next credible stamp, or by now."""
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
                "nothing is decided: %s; set the clocks right, they may differ by %d ms",
                wrong,
                CLOCK_LEAD_MAX_MS,
            )
        elif self.wrong and not wrong:
            logger.warning("the clocks agree again: deciding goes on")
        self.wrong = wrong


def asking(log: Log, tp: TopicPartition, partitions: int) -> Callable[[], Awaitable[int]]:
    """What asks the broker of a commands partition for the time: a nudge of an execution that does not exist.

    Args:
        log: where the partition is.
        tp: the partition.
        partitions: their count.
    """
    question = time_question(tp.partition, partitions)

    async def ask() -> int:
        return await log.send_stamped(tp, question)

    return ask
