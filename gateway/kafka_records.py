"""Reads single records back from the log, bytes as they stand: what an audit proof is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from log.errors import LogDamaged, LogError
from log.kafka.client import KafkaSettings, start, stop
from schemas.record import RawRecord, raw_record

POLL_MS = 200
READ_TIMEOUT_S = 10.0
# Small: what follows a record that is asked for is read, decoded and thrown away.
FETCH_BYTES = 64 * 1024


@dataclass(slots=True)
class RecordReader:
    """One consumer, opened when it is first needed; one question at a time."""

    config: KafkaSettings
    _consumer: AIOKafkaConsumer | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, topic: str, partition: int, offsets: Sequence[int]) -> dict[int, RawRecord]:
        """The records at offsets of one partition; what lies between the first and the last is read as well.

        Args:
            topic: the name of a topic.
            partition: of it.
            offsets: rising; at least one.

        Raises:
            LogError: they did not come in time; or the log does not hold one of them any more, or not as it was
                written.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    return await self._read(TopicPartition(topic, partition), offsets)
            except OffsetOutOfRangeError as error:
                raise _gone(TopicPartition(topic, partition), offsets[0]) from error
            except (KafkaError, OSError, TimeoutError) as error:
                told = self.config.translate(error, consumer=self._consumer)
                if not isinstance(told, LogDamaged):
                    await self._drop()
                raise told from error

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._drop()

    async def _read(self, tp: TopicPartition, offsets: Sequence[int]) -> dict[int, RawRecord]:
        if self._consumer is None:
            consumer = self.config.reader(FETCH_BYTES)
            await start(consumer, self.config)
            self._consumer = consumer
        consumer = self._consumer
        # No await in between: a partition that is assigned without a position asks for a committed one.
        consumer.assign([tp])
        consumer.seek(tp, offsets[0])
        wanted, found = set(offsets), dict[int, RawRecord]()
        try:
            while await consumer.position(tp) <= offsets[-1]:
                for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    found.update((one.offset, raw_record(one)) for one in records if one.offset in wanted)
        finally:
            consumer.assign([])
        if missing := wanted - found.keys():
            raise _gone(tp, min(missing))
        return found

    async def _drop(self) -> None:
        if self._consumer is not None:
            await stop(self._consumer)
            self._consumer = None


def _gone(tp: TopicPartition, offset: int) -> LogError:
    return LogError(f"{tp.topic}/{tp.partition} does not hold offset {offset} any more")
