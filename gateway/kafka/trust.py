"""The gateway's tail of `placet.trust`: the whole compacted topic, and then new records; and where the log ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from gateway.live.trust import TrustParts
from log.kafka.client import KafkaSettings
from log.kafka.follower import TAIL, Follower, follow_for_ever
from log.places import TopicPartition
from vitals.log_reach import LOOK_EVERY_S

POLL_MS = 1_000


@dataclass(frozen=True, slots=True)
class TrustTail:
    """Keeps `parts` current from the topic; after any interruption, it begins again from the first record.

    What is counted there are the events of `executions`, and what is read counts only while it reaches its ends.
    """

    config: KafkaSettings
    topic: str
    executions: str
    partitions: int
    parts: TrustParts

    async def run(self) -> None:
        """Read until cancelled. The gateway only displays trust, so it continues without it."""
        # With a connection of its own: on the other, the question would wait behind a long fetch.
        await asyncio.gather(
            follow_for_ever("the trust statistics", self._follow, self.config, TAIL),
            follow_for_ever("the ends of the log", self._watch, self.config),
        )

    async def _watch(self, follower: Follower) -> None:
        tps = [TopicPartition(self.executions, partition) for partition in range(self.partitions)]
        while True:
            ends = await follower.ends(tps)
            self.parts.reach.look({tp.partition: end for tp, end in ends.items()})
            await asyncio.sleep(LOOK_EVERY_S)

    async def _follow(self, follower: Follower) -> None:
        try:
            await self._read(follower)
        finally:
            # What was read before an outage must not be reported as complete.
            self.parts.forget()

    async def _read(self, follower: Follower) -> None:
        tps = [TopicPartition(self.topic, partition) for partition in range(self.partitions)]
        held = await follower.bounds(tps)
        follower.stand_at({tp: held[tp].first for tp in tps})
        while True:
            for _, records in await follower.poll(POLL_MS):
                for record in records:
                    self.parts.take(record)
            if not self.parts.is_read:
                # A compacted partition may end in offsets without a record, so the position is what counts.
                reached = [await follower.position(tp) for tp in tps]
                self.parts.is_read = all(at >= held[tp].end for at, tp in zip(reached, tps, strict=True))
