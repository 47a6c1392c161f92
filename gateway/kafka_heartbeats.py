"""The gateway's tail of `placet.heartbeats`: what comes from now on; what was said before nobody heard it is old."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from gateway.live.heard import Heard
from log.errors import LogError
from log.kafka.client import KafkaSettings, start, stop
from vitals.word import WordUnreadable, decode

logger = logging.getLogger(__name__)

POLL_MS = 1_000
RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class HeartbeatTail:
    """Keeps `heard` as the topic says; whatever breaks the reading off, it begins again at the end."""

    config: KafkaSettings
    topic: str
    heard: Heard

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            consumer = self.config.reader(64 * 1024)
            try:
                await start(consumer, self.config)
                await self._follow(consumer)
            except (LogError, KafkaError, OSError) as error:
                logger.warning("the heartbeats cannot be read (%s); beginning again", error)
            finally:
                await stop(consumer)
            await asyncio.sleep(RETRY_S)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        tp = TopicPartition(self.topic, 0)
        consumer.assign([tp])
        consumer.seek(tp, (await consumer.end_offsets([tp]))[tp])
        while True:
            for record in (await consumer.getmany(tp, timeout_ms=POLL_MS)).get(tp, ()):
                try:
                    self.heard.take(decode(record.value))
                except WordUnreadable as error:
                    logger.warning("a record of %s is no heartbeat: %s", self.topic, error)
