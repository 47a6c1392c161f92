"""Trust as the decider reads it from `placet.trust`; only cited if it is complete and not behind the log."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from log.errors import LogUnreachable
from log.places import TopicPartition
from log.port import Log
from schemas.record import RawRecord, UnreadableRecord
from services.domain.trust.book import KnownTrust, TrustBook
from services.runtime.claim import READ_TOGETHER
from vitals.log_reach import BEHIND_MAX_S, LOOK_EVERY_S, Ends, LogReach

REMEMBERED_MAX = 10_000
# A partition without a leader answers after a minute: until then nobody would see where the others end.
LOOK_WITHIN_S = 5.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TrustTail:
    """Follows `placet.trust`, and the ends of the log that it must reach.

    Trust is missing until all of it is read, while its parts do not add up, and while it does not reach where the log
    ended when this process started and `BEHIND_MAX_S` ago: a trust role that is down, or counts anew, would otherwise
    be believed. It is missing, too, once nobody has seen for that long where one of the partitions ends.
    """

    log: Log
    reach: LogReach = field(default_factory=LogReach)
    _book: TrustBook | None = None
    _starts: dict[int, int] = field(default_factory=dict)
    # The partitions whose end could not be read at the last look.
    _unseen: frozenset[int] = frozenset()
    _remembered: dict[tuple[str, str, str, str, str], KnownTrust | None] = field(default_factory=dict)

    async def load(self) -> None:
        """Find the present ends of the topic and of the log: trust is known only after them."""
        topic = self.log.topics.trust
        bounds = {
            partition: await self.log.bounds(TopicPartition(topic, partition))
            for partition in range(await self.log.partition_count(topic))
        }
        self._starts = {partition: first for partition, (first, _) in bounds.items()}
        ends = {partition: end for partition, (_, end) in bounds.items()}
        self.reach.look(await self._log_ends())
        self._book = TrustBook(ends, await self.log.topic_id(self.log.topics.executions))

    async def follow(self) -> None:
        """Read for ever.

        Raises:
            LogError: the log failed.
        """
        async for _, raws in self.log.tail(self.log.topics.trust, self._starts):
            for begin in range(0, len(raws), READ_TOGETHER):
                self._take(raws[begin : begin + READ_TOGETHER])
                # As when events are read: other tasks share this loop.
                await asyncio.sleep(0)

    async def watch(self) -> None:
        """Look for ever at where the log ends."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.look(*await self._readable_ends())

    def look(self, ends: Ends, why: str = "") -> None:
        """Take where the log ends now, as far as that can be read; trust must reach it `BEHIND_MAX_S` from now on.

        Args:
            ends: of the partitions whose end could be read.
            why: why the others could not.
        """
        self.reach.look(ends)
        self._remembered.clear()
        self._tell(self.reach.partitions - ends.keys(), why)

    def _tell(self, unseen: frozenset[int], why: str) -> None:
        """Log which partitions' ends cannot be read; once, and again when that changes."""
        if unseen == self._unseen:
            return
        self._unseen = unseen
        if not unseen:
            logger.warning("where each partition of the log ends is read again")
            return
        logger.warning(
            "where partitions %s of the log end was not read (%s): after %g s of that, trust releases nothing",
            sorted(unseen),
            why,
            BEHIND_MAX_S,
        )

    async def _readable_ends(self) -> tuple[Ends, str]:
        """Where the partitions end that can be read, and why others cannot."""
        numbers = sorted(self.reach.partitions)
        # Together: those that do not answer in time must not delay the others.
        found = await asyncio.gather(*map(self._end_of, numbers), return_exceptions=True)
        ends, why = dict[int, int](), ""
        for number, end in zip(numbers, found, strict=True):
            if isinstance(end, TimeoutError):
                why = f"no answer within {LOOK_WITHIN_S:g} s"
            elif isinstance(end, LogUnreachable):
                why = str(end)
            elif isinstance(end, BaseException):
                raise end
            else:
                ends[number] = end
        return ends, why

    async def _end_of(self, number: int) -> int:
        async with asyncio.timeout(LOOK_WITHIN_S):
            return (await self.log.bounds(TopicPartition(self.log.topics.executions, number)))[1]

    async def _log_ends(self) -> Ends:
        topic = self.log.topics.executions
        count = await self.log.partition_count(topic)
        return {number: (await self.log.bounds(TopicPartition(topic, number)))[1] for number in range(count)}

    def _take(self, raws: Sequence[RawRecord]) -> None:
        self._remembered.clear()
        for raw in raws:
            try:
                if self._book is not None:
                    self._book.apply(raw)
            except UnreadableRecord as error:
                logger.warning("placet.trust/%d offset %d: %s", raw.partition, raw.offset, error)

    def known(self, tenant: str, project: str, agent: str, tool: str, trust_class: str) -> KnownTrust | None:
        """What is known of a project's agent with a tool and a class of its calls, or None while trust is missing."""
        if not self.reach.is_seen():
            return None
        key = (tenant, project, agent, tool, trust_class)
        if key not in self._remembered:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[key] = self._known(key)
        return self._remembered[key]

    def _known(self, names: tuple[str, str, str, str, str]) -> KnownTrust | None:
        found = None if self._book is None else self._book.known(*names)
        return found if found is not None and self.reach.is_reached(found.through) else None
