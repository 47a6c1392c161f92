"""Reads single records back from the log, bytes as they stand: what an audit proof is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from gateway.kafka_client import KafkaConfig, KafkaUnreachable, new_consumer, start, stop
from gateway.kafka_tail import LogLost
from log.kafka.damage import damage, is_damage
from schemas.record import RawRecord, raw_record

POLL_MS = 200
READ_TIMEOUT_S = 10.0
# Small: what follows a record that is asked for is read, decoded and thrown away.
FETCH_BYTES = 64 * 1024


@dataclass(slots=True)
class RecordReader:
    """One consumer, opened when it is first needed; one question at a time."""

    config: KafkaConfig
    _consumer: AIOKafkaConsumer | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, topic: str, partition: int, offsets: Sequence[int]) -> dict[int, RawRecord]:
        """The records at offsets of one partition; what lies between the first and the last is read as well.

        Args:
            topic: the name of a topic.
            partition: of it.
            offsets: rising; at least one.

        Raises:
            KafkaUnreachable: they did not come in time.
            LogLost: the log does not hold one of them any more, or not as it was written.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    return await self._read(TopicPartition(topic, partition), offsets)
            except OffsetOutOfRangeError as error:
                raise LogLost(f"{topic}/{partition} does not hold offset {offsets[0]} any more") from error
            except (KafkaError, OSError, TimeoutError) as error:
                if is_damage(error) and self._consumer is not None:
                    raise LogLost(damage(self._consumer, error)) from error
                await self._drop()
                raise KafkaUnreachable(
                    f"the record could not be read from Kafka ({type(error).__name__}): try again"
                ) from error

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._drop()

    async def _read(self, tp: TopicPartition, offsets: Sequence[int]) -> dict[int, RawRecord]:
        if self._consumer is None:
            consumer = new_consumer(self.config, fetch_bytes=FETCH_BYTES)
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
            raise LogLost(f"{tp.topic}/{tp.partition} does not hold offset {min(missing)} any more")
        return found

    async def _drop(self) -> None:
        if self._consumer is not None:
            await stop(self._consumer)
            self._consumer = None
