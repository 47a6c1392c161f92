"""The gateway's tail of `placet.trust`: all of the compacted topic, and then what comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from gateway.live.trust import TrustParts
from log.errors import LogError
from log.kafka.client import KafkaSettings, start, stop
from schemas.record import raw_record

logger = logging.getLogger(__name__)

POLL_MS = 1_000
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class TrustTail:
    """Keeps `parts` as the topic says; whatever breaks the reading off, it begins again from the first record."""

    config: KafkaSettings
    topic: str
    partitions: int
    parts: TrustParts

    async def run(self) -> None:
        """Read until cancelled. Trust is only shown here, so that the gateway goes on without it."""
        while True:
            consumer = self.config.reader()
            self.parts.forget()
            try:
                await start(consumer, self.config)
                await self._follow(consumer)
            except (LogError, KafkaError, OSError) as error:
                logger.warning("the trust statistics cannot be read (%s); beginning again", error)
            finally:
                await stop(consumer)
            await asyncio.sleep(RETRY_S)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        tps = [TopicPartition(self.topic, partition) for partition in range(self.partitions)]
        consumer.assign(tps)
        first: Mapping[TopicPartition, int] = await consumer.beginning_offsets(tps)
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets(tps)
        for tp in tps:
            consumer.seek(tp, first[tp])
        while True:
            for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                for record in records:
                    self.parts.take(raw_record(record))
            if not self.parts.complete:
                # A compacted partition may end in offsets without a record: its position says how far it is.
                reached = [await consumer.position(tp) for tp in tps]
                self.parts.complete = all(at >= ends[tp] for at, tp in zip(reached, tps, strict=True))
