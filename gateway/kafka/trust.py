"""The gateway's tail of `placet.trust`: the whole compacted topic, and then new records."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.live.trust import TrustParts
from log.kafka.client import KafkaSettings
from log.kafka.follower import TAIL, Follower, follow_for_ever
from log.places import TopicPartition

POLL_MS = 1_000


@dataclass(frozen=True, slots=True)
class TrustTail:
    """Keeps `parts` current from the topic; after any interruption, it begins again from the first record."""

    config: KafkaSettings
    topic: str
    partitions: int
    parts: TrustParts

    async def run(self) -> None:
        """Read until cancelled. The gateway only displays trust, so it continues without it."""
        await follow_for_ever("the trust statistics", self._follow, self.config, TAIL)

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
            if not self.parts.complete:
                # A compacted partition may end in offsets without a record, so the position is what counts.
                reached = [await follower.position(tp) for tp in tps]
                self.parts.complete = all(at >= held[tp].end for at, tp in zip(reached, tps, strict=True))
