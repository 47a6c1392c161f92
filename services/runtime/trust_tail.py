"""Trust as the decider reads it from `placet.trust`; only cited if complete."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from log.places import TopicPartition
from log.port import Log
from schemas.record import RawRecord, UnreadableRecord
from services.domain.trust import TrustBook
from services.runtime.claim import READ_TOGETHER

REMEMBERED_MAX = 10_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TrustTail:
    """Follows `placet.trust`. Until all of it is read, and while its parts do not add up, trust is missing."""

    log: Log
    _book: TrustBook | None = None
    _starts: dict[int, int] = field(default_factory=dict)
    _remembered: dict[tuple[str, str, str, str], Mapping[str, Any] | None] = field(default_factory=dict)

    async def load(self) -> None:
        """Find the topic's present end: trust is known only after it."""
        topic = self.log.topics.trust
        bounds = {
            partition: await self.log.bounds(TopicPartition(topic, partition))
            for partition in range(await self.log.partition_count(topic))
        }
        self._starts = {partition: first for partition, (first, _) in bounds.items()}
        ends = {partition: end for partition, (_, end) in bounds.items()}
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

    def _take(self, raws: Sequence[RawRecord]) -> None:
        self._remembered.clear()
        for raw in raws:
            try:
                if self._book is not None:
                    self._book.apply(raw)
            except UnreadableRecord as error:
                logger.warning("placet.trust/%d offset %d: %s", raw.partition, raw.offset, error)

    def trust_for(self, tenant: str, project: str, agent: str, tool: str) -> Mapping[str, Any] | None:
        """The trust in a project's agent with a tool, or None while incomplete."""
        key = (tenant, project, agent, tool)
        if key not in self._remembered:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[key] = self._book.trust_for(*key) if self._book is not None else None
        return self._remembered[key]
