"""Trust as the decider reads it from `placet.trust`; only cited if it is complete and not behind the log."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from log.errors import LogUnreachable
from log.places import TopicPartition
from log.port import Log
from schemas.record import RawRecord, UnreadableRecord
from services.domain.trust.book import KnownTrust, TrustBook
from services.runtime.claim import READ_TOGETHER

REMEMBERED_MAX = 10_000
# Trust may be behind the log by this much; beyond it, what people have decided meanwhile is unknown.
BEHIND_MAX_S = 15.0
LOOK_EVERY_S = 3.0

logger = logging.getLogger(__name__)
Ends = Mapping[int, int]


@dataclass(slots=True)
class TrustTail:
    """Follows `placet.trust`, and the ends of the log that it must reach.

    Trust is missing until all of it is read, while its parts do not add up, and while it does not reach where the log
    ended when this process started and `BEHIND_MAX_S` ago: a trust role that is down, or counts anew, would otherwise
    be believed.
    """

    log: Log
    clock: Callable[[], float] = time.monotonic
    _book: TrustBook | None = None
    _starts: dict[int, int] = field(default_factory=dict)
    _must_reach: Ends = field(default_factory=dict)
    _looks: deque[tuple[float, Ends]] = field(default_factory=deque)
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
        self._must_reach = await self._log_ends()
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
            try:
                self.look(await self._log_ends())
            except LogUnreachable as error:
                # Unknown for now; nothing can be decided meanwhile, since no event can be written.
                logger.info("the ends of the log were not read: %s", error)

    def look(self, ends: Ends) -> None:
        """Take where the log ends now; trust must reach it `BEHIND_MAX_S` from now on."""
        now = self.clock()
        self._looks.append((now, ends))
        while self._looks and self._looks[0][0] <= now - BEHIND_MAX_S:
            _, due = self._looks.popleft()
            self._must_reach = {**self._must_reach, **due}
            self._remembered.clear()

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
        key = (tenant, project, agent, tool, trust_class)
        if key not in self._remembered:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[key] = self._known(key)
        return self._remembered[key]

    def _known(self, names: tuple[str, str, str, str, str]) -> KnownTrust | None:
        found = None if self._book is None else self._book.known(*names)
        if found is None or any(
            found.through.get(number, -1) < end - 1 for number, end in self._must_reach.items()
        ):
            return None
        return found
