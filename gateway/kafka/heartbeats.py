"""The gateway's tail of `placet.heartbeats`, from its present end: earlier heartbeats are out of date."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from gateway.live.heartbeats import LatestHeartbeats
from log.kafka.client import KafkaSettings
from log.kafka.follower import Fetch, Follower, follow_for_ever
from log.places import TopicPartition
from schemas.record import RawRecord
from vitals.heartbeat import HeartbeatUnreadable, decode

logger = logging.getLogger(__name__)

POLL_MS = 1_000
FETCH = Fetch(size=64 * 1024)


@dataclass(frozen=True, slots=True)
class HeartbeatTail:
    """Keeps `heartbeats` current from the topic; after any interruption, it begins again at the end."""

    config: KafkaSettings
    topic: str
    heartbeats: LatestHeartbeats

    async def run(self) -> None:
        """Read until cancelled."""
        await follow_for_ever("the heartbeats", self._follow, self.config, FETCH)

    async def _follow(self, follower: Follower) -> None:
        follower.stand_at(await follower.ends([TopicPartition(self.topic, 0)]))
        self.heartbeats.begin()
        while True:
            for _, records in await follower.poll(POLL_MS):
                for record in records:
                    self._take(record)

    def _take(self, raw: RawRecord) -> None:
        try:
            self.heartbeats.record(decode(raw.value))
        except HeartbeatUnreadable as error:
            logger.warning("a record of %s is not a heartbeat: %s", self.topic, error)
