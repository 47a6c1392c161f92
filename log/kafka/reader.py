"""Reads Kafka without a group: a range to its end, or a tail without end. Nothing is skipped."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from log.errors import LogFailing, LogTruncated, LogUnreachable, OffsetGone
from log.kafka.client import KafkaSettings
from log.kafka.cluster import AskBounds, Cluster
from log.kafka.damage import stalled
from log.kafka.follower import SHARED, SHARED_TAIL, Fetch, Follower
from log.places import TopicPartition
from schemas.record import RawRecord

STALLED_AFTER_S = 30.0
# A topic that is deleted and recreated under a running tail looks like the old one: check its id this often.
SAME_TOPIC_EVERY_S = 5.0


class KafkaReader:
    """Reads with a new follower each time; when it is closed, it closes the open ones."""

    def __init__(self, settings: KafkaSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._open: set[Follower] = set()
        self._closed = False

    async def read(
        self, tp: TopicPartition, start_at: int, stop_at: int
    ) -> AsyncGenerator[Sequence[RawRecord], None]:
        """See `Log.read`."""
        await self._check(tp, start_at, stop_at)
        if start_at >= stop_at:
            return
        async with self._following({tp: start_at}, SHARED) as follower:
            position, progress_at = start_at, _now_s()
            while position < stop_at:
                for _, records in await follower.poll():
                    if chunk := [record for record in records if record.offset < stop_at]:
                        yield chunk
                # Control records and compacted records are visible only as a position that advances.
                moved_to = await follower.position(tp)
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
        async with self._following(positions, SHARED_TAIL) as follower:
            checked_at = _now_s()
            while not self._closed:
                for tp, records in await follower.poll():
                    yield tp.partition, records
                if _now_s() - checked_at > SAME_TOPIC_EVERY_S:
                    await self._check_same(topic, topic_id, positions, follower)
                    checked_at = _now_s()

    async def close(self) -> None:
        """Close every follower; tails end."""
        self._closed = True
        await asyncio.gather(*(follower.close() for follower in self._open))

    @asynccontextmanager
    async def _following(
        self, positions: Mapping[TopicPartition, int], fetch: Fetch
    ) -> AsyncIterator[Follower]:
        follower = Follower(self._settings, fetch)
        self._open.add(follower)
        try:
            await follower.open()
            follower.stand_at(positions)
            yield follower
        except OffsetGone as error:
            raise await truncated(error, self._cluster.bounds) from error
        finally:
            self._open.discard(follower)
            await follower.close()

    async def _check(self, tp: TopicPartition, *wanted: int) -> None:
        first, end = await self._cluster.bounds(tp)
        for offset in wanted:
            if not first <= offset <= end:
                raise LogTruncated(tp, offset, first, end)

    async def _check_same(
        self, topic: str, topic_id: str, positions: Mapping[TopicPartition, int], follower: Follower
    ) -> None:
        try:
            now = await self._cluster.topic(topic)
        except LogUnreachable:
            return
        if now.topic_id != topic_id:
            tp = next(iter(positions))
            raise LogTruncated(tp, await follower.position(tp), *await self._cluster.bounds(tp))


async def truncated(error: OffsetGone, bounds: AskBounds) -> LogTruncated:
    """The error for a missing offset, with the partition's current bounds."""
    return LogTruncated(error.tp, error.offset, *await bounds(error.tp))


def _now_s() -> float:
    return asyncio.get_running_loop().time()
