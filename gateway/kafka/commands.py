"""The command topics: batches are appended whole, one at a time.

While one append is under way the next commands gather (group commit), so a single command does not wait, and many
share a signature, a batch and a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from gateway.live.log_time import LogTime
from log.errors import AppendFailed, LogError
from log.kafka.client import KafkaSettings, start, stop
from log.places import TopicPartition
from schemas.record import OutRecord

# Below the broker's limit; one command is at most its arguments, its context and a few short fields.
BATCH_MAX_BYTES = 1_000_000
# The type of an acknowledgement's timestamp: the broker's, if the topic has LogAppendTime.
LOG_APPEND_TIME = 1


@dataclass(slots=True)
class KafkaCommandLog:
    """Appends signed commands. A producer whose append failed is discarded and replaced by a new one.

    `time` takes the broker's time from each acknowledgement.
    """

    config: KafkaSettings
    time: LogTime = field(default_factory=LogTime)
    _producer: AIOKafkaProducer | None = field(default=None, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def open(self) -> AIOKafkaProducer:
        """Connect, unless there is a good producer.

        Raises:
            LogUnreachable: Kafka does not answer.
        """
        async with self._opening:
            if self._producer is None:
                producer = self.config.producer()
                await start(producer, self.config)
                self._producer = producer
            return self._producer

    async def close(self) -> None:
        """Close the connection."""
        await self._discard(self._producer)

    @property
    def connected(self) -> bool:
        """True if there is a producer without a failed append."""
        return self._producer is not None

    async def append(self, topic: str, partition: int, records: Sequence[OutRecord]) -> None:
        """Append records to a partition, in order; returns when every replica has them.

        Raises:
            AppendFailed: the outcome is unknown, or Kafka cannot be reached.
        """
        producer = self._producer
        try:
            producer = producer or await self.open()
            for batch in batches(records):
                await self._append_batch(producer, topic, partition, batch)
        except (KafkaError, LogError, OSError, TimeoutError) as error:
            await self._discard(producer)
            raise AppendFailed(
                TopicPartition(topic, partition), f"{type(error).__name__} {error}".strip()
            ) from error
        except asyncio.CancelledError:
            await self._discard(producer)
            raise

    async def _append_batch(
        self, producer: AIOKafkaProducer, topic: str, partition: int, records: Sequence[OutRecord]
    ) -> None:
        builder = producer.create_batch()
        for record in records:
            headers = list(record.headers)
            # A full builder returns None and drops the record.
            if builder.append(timestamp=None, key=record.key, value=record.value, headers=headers) is None:
                raise AppendFailed(TopicPartition(topic, partition), "a command does not fit a batch")
        builder.close()
        asked = self.time.moment()
        acknowledged = await producer.send_batch(builder, topic, partition=partition)
        async with asyncio.timeout(self.config.append_timeout_ms / 1000):
            told = await acknowledged
        if told.timestamp_type == LOG_APPEND_TIME:
            self.time.learn(asked, told.timestamp)

    async def _discard(self, producer: AIOKafkaProducer | None) -> None:
        # Several appends share a producer; the first that fails discards it, and none discards its successor.
        if producer is not None and self._producer is producer:
            self._producer = None
            await stop(producer)


def batches(records: Iterable[OutRecord]) -> Iterable[list[OutRecord]]:
    """Yield the records in order, divided so that each part fits one batch."""
    part: list[OutRecord] = []
    size = 0
    for record in records:
        size += record.size_bytes()
        if part and size > BATCH_MAX_BYTES:
            yield part
            part, size = [], record.size_bytes()
        part.append(record)
    if part:
        yield part
