"""Reading Kafka without a group: a range to its end, or a tail without end. Nothing is skipped."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError, OffsetOutOfRangeError

from log.errors import LogFailing, LogTruncated, LogUnreachable
from log.kafka.client import KafkaSettings, start, stop
from log.kafka.cluster import Cluster
from log.kafka.damage import stalled
from log.places import TopicPartition
from schemas.record import RawRecord, raw_record

Bounds = Callable[[TopicPartition], Awaitable[tuple[int, int]]]

FETCH_MS = 500
STALLED_AFTER_S = 30.0
# A topic that is deleted and made anew under a running tail looks like the old one: look at its id so often.
SAME_TOPIC_EVERY_S = 5.0


class KafkaReader:
    """Reads with a consumer of its own each time; closes those that are open when it is closed."""

    def __init__(self, settings: KafkaSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._open: set[AIOKafkaConsumer] = set()
        self._closed = False

    async def read(
        self, tp: TopicPartition, start_at: int, stop_at: int
    ) -> AsyncGenerator[Sequence[RawRecord], None]:
        """See `Log.read`."""
        await self._check(tp, start_at, stop_at)
        if start_at >= stop_at:
            return
        partition = KafkaPartition(*tp)
        async with self._consumer({tp: start_at}) as consumer:
            position, progress_at = start_at, _now_s()
            while position < stop_at:
                records = (await consumer.getmany(timeout_ms=FETCH_MS)).get(partition, [])
                if chunk := [raw_record(record) for record in records if record.offset < stop_at]:
                    yield chunk
                # Control records and what compaction removed show only as a position that moves on.
                moved_to = await consumer.position(partition)
                if moved_to > position:
                    position, progress_at = moved_to, _now_s()
                elif _now_s() - progress_at > STALLED_AFTER_S:
                    said = stalled(f"{tp}@{position}", STALLED_AFTER_S)
                    raise LogFailing(self._settings.bootstrap_servers, said)

    async def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        """See `Log.tail`."""
        topic_id = (await self._cluster.topic(topic)).topic_id
        positions = {TopicPartition(topic, number): offset for number, offset in starts.items()}
        await asyncio.gather(*(self._check(tp, offset) for tp, offset in positions.items()))
        async with self._consumer(positions) as consumer:
            checked_at = _now_s()
            while not self._closed:
                for partition, records in (await consumer.getmany(timeout_ms=FETCH_MS)).items():
                    yield partition.partition, [raw_record(record) for record in records]
                if _now_s() - checked_at > SAME_TOPIC_EVERY_S:
                    await self._check_same(topic, topic_id, consumer)
                    checked_at = _now_s()

    async def close(self) -> None:
        """Stop every consumer; tails end."""
        self._closed = True
        await asyncio.gather(*(stop(consumer) for consumer in self._open))

    @asynccontextmanager
    async def _consumer(self, positions: Mapping[TopicPartition, int]) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = self._settings.consumer()
        self._open.add(consumer)
        try:
            await start(consumer, self._settings)
            # No await in between: a partition that is assigned without a position asks for a committed one.
            consumer.assign([KafkaPartition(*tp) for tp in positions])
            for tp, offset in positions.items():
                consumer.seek(KafkaPartition(*tp), offset)
            yield consumer
        except OffsetOutOfRangeError as error:
            raise await truncated(error, self._cluster.bounds) from error
        except (KafkaError, ConsumerStoppedError) as error:
            raise self._settings.translate(error, consumer=consumer) from error
        finally:
            self._open.discard(consumer)
            await stop(consumer)

    async def _check(self, tp: TopicPartition, *wanted: int) -> None:
        first, end = await self._cluster.bounds(tp)
        for offset in wanted:
            if not first <= offset <= end:
                raise LogTruncated(tp, offset, first, end)

    async def _check_same(self, topic: str, topic_id: str, consumer: AIOKafkaConsumer) -> None:
        try:
            now = await self._cluster.topic(topic)
        except LogUnreachable:
            return
        if now.topic_id != topic_id:
            partition = next(iter(consumer.assignment()))
            tp = TopicPartition(*partition)
            raise LogTruncated(tp, await consumer.position(partition), *await self._cluster.bounds(tp))


async def truncated(error: OffsetOutOfRangeError, bounds: Bounds) -> LogTruncated:
    """What an offset out of range means, with what the partition holds now."""
    (partition, wanted), *_ = error.args[0].items()
    tp = TopicPartition(*partition)
    return LogTruncated(tp, wanted, *await bounds(tp))


def _now_s() -> float:
    return asyncio.get_running_loop().time()
