"""Follows given partitions of the log from given offsets on, without a group. Nothing is skipped.

Everything that reads Kafka without a group uses a `Follower`: the port's reader (`log.kafka.reader`), the projector,
the gateway's tails and the replay. aiokafka's defaults are unsafe (a group, auto-commit, `latest` for a deleted
offset), so every setting that matters is set explicitly, for aiokafka 0.14.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError, OffsetOutOfRangeError

from log.errors import LogChanged, LogDamaged, LogError, OffsetGone, TopicMissing
from log.kafka.client import MAX_RECORDS, KafkaSettings, start, stop
from log.kafka.lag import progress
from log.places import Bounds, TopicPartition
from schemas.record import RawRecord, raw_record
from schemas.topics import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

ASK_TIMEOUT_S = 30.0
POLL_MS = 500
RETRY_S = 0.5
BEGIN_AGAIN_S = 1.0

Polled = list[tuple[TopicPartition, list[RawRecord]]]
Follow = Callable[["Follower"], Awaitable[None]]


class Fetch(NamedTuple):
    """How much the broker returns to one fetch.

    Attributes:
        size: the approximate bytes of each partition; at least one batch.
        at_least: the total bytes for which the broker waits.
        wait_ms: the time after which it answers with fewer, in milliseconds.
        records: the maximal number of records of one poll; None for all that came.
        rest_ms: after a poll without records, the broker answers at the first byte, or after this many ms;
            None: as always.
    """

    size: int = 2 * MAX_MESSAGE_BYTES
    at_least: int = 1
    wait_ms: int = 500
    records: int | None = None
    rest_ms: int | None = None


# For readers that do nothing else.
ALONE = Fetch()
# For readers that share their event loop with writers: few records at a time. A fetch in flight names fixed
# partitions, so a partition that is requested meanwhile waits for its end.
SHARED = Fetch(wait_ms=200, records=MAX_RECORDS)
# For tails that always read the same partitions: an answer without records costs both sides a request, and nothing
# waits for it.
TAIL = Fetch(wait_ms=2_000)
SHARED_TAIL = SHARED._replace(wait_ms=TAIL.wait_ms)
# For views, which may be slightly behind (people's answers come from the gateway's own tail): one event at a time
# costs the broker and the reader several times as much. The first event after a pause does not wait for others.
BULK = Fetch(size=1024 * 1024, at_least=128 * 1024, wait_ms=50, rest_ms=TAIL.wait_ms)


class Follower:
    """One consumer of given partitions."""

    def __init__(self, settings: KafkaSettings, fetch: Fetch = ALONE) -> None:
        self._settings = settings
        self._standing: tuple[KafkaPartition, ...] = ()
        self._closed = False
        self._fetch, self._rests = fetch, False
        self._consumer = settings.consumer(
            max_partition_fetch_bytes=fetch.size,
            fetch_min_bytes=fetch.at_least,
            fetch_max_wait_ms=fetch.wait_ms,
            max_poll_records=fetch.records,
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            LogUnreachable: the cluster does not answer.
            LogRefused: the cluster refuses the connection.
        """
        await start(self._consumer, self._settings)

    async def close(self) -> None:
        """Close the connection within about two seconds. Can be called again."""
        self._closed = True
        await stop(self._consumer)

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, in order.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: the cluster does not answer.
        """
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                cluster = await self._consumer._client.fetch_all_metadata()
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._settings.translate(error) from error
        found = cluster.partitions_for_topic(topic)
        if not found:
            raise TopicMissing(topic)
        return [TopicPartition(topic, number) for number in sorted(found)]

    async def bounds(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """The current bounds of each partition.

        Raises:
            LogUnreachable: the cluster does not answer.
        """
        wanted = [KafkaPartition(*tp) for tp in partitions]
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                first = await self._consumer.beginning_offsets(wanted)
                end = await self._consumer.end_offsets(wanted)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._settings.translate(error) from error
        return {TopicPartition(*tp): Bounds(first[tp], end[tp]) for tp in wanted}

    async def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The current end of each partition, one past its last offset.

        Raises:
            LogUnreachable: the cluster does not answer.
        """
        wanted = [KafkaPartition(*tp) for tp in partitions]
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                ends = await self._consumer.end_offsets(wanted)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._settings.translate(error) from error
        return {TopicPartition(*tp): ends[tp] for tp in wanted}

    def stand_at(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions from these offsets on; with none, read nothing."""
        self._standing = tuple(KafkaPartition(*tp) for tp in offsets)
        # No await in between: aiokafka would look for a committed position of an assigned partition without one.
        self._consumer.assign(list(self._standing))
        for tp, offset in zip(self._standing, offsets.values(), strict=True):
            self._consumer.seek(tp, offset)

    async def poll(self, timeout_ms: int = POLL_MS) -> Polled:
        """The next records, by partition in offset order; waits up to a timeout for the first record.

        Raises:
            OffsetGone: the next offset of a partition is missing.
            LogDamaged: the next record is damaged.
            LogError: Kafka refuses or fails, or the follower was closed.
        """
        try:
            found = await self._consumer.getmany(timeout_ms=timeout_ms)
        except OffsetOutOfRangeError as error:
            raise offset_gone(error) from error
        except (KafkaError, ConsumerStoppedError, OSError) as error:
            raise self._settings.translate(error, consumer=self._consumer) from error
        if self._fetch.rest_ms is not None and self._rests == bool(found):
            self._pace(self._fetch.rest_ms, rests=not found)
        return [
            (TopicPartition(*at), [raw_record(record) for record in records]) for at, records in found.items()
        ]

    def _pace(self, rest_ms: int, *, rests: bool) -> None:
        """Fetch at the first byte from now on, or in bulk again; aiokafka cannot change this at run time."""
        fetcher, self._rests = self._consumer._fetcher, rests
        fetcher._fetch_min_bytes = 1 if rests else self._fetch.at_least
        fetcher._fetch_max_wait_ms = rest_ms if rests else self._fetch.wait_ms

    async def poll_on(self, timeout_ms: int = POLL_MS) -> Polled:
        """As `poll`, but returns nothing, after a pause, if the broker is unreachable or fails.

        Raises:
            OffsetGone: the next offset of a partition is missing.
            LogDamaged: the next record is damaged.
            LogError: the follower was closed.
        """
        try:
            return await self.poll(timeout_ms)
        except (LogChanged, LogDamaged):
            raise
        except LogError as error:
            if self._closed:
                raise
            logger.warning("the log could not be read (%s); trying again", error)
            await asyncio.sleep(RETRY_S)
            return []

    async def position(self, tp: TopicPartition) -> int:
        """The offset that is read next; it also moves over offsets without a record.

        Raises:
            LogError: the follower was closed.
        """
        try:
            found: int = await self._consumer.position(KafkaPartition(*tp))
        except (KafkaError, ConsumerStoppedError) as error:
            raise self._settings.translate(error, consumer=self._consumer) from error
        return found

    async def read_one(self, tp: TopicPartition, offset: int) -> RawRecord:
        """The first record at an offset or after it. Changes the follower's position.

        Raises:
            LogChanged: the offset is missing.
            LogUnreachable: the record did not come in time.
        """
        self.stand_at({tp: offset})
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                while not (polled := await self.poll_on()):
                    pass
        except TimeoutError as error:
            raise self._settings.translate(error) from error
        return polled[0][1][0]

    def progress(self) -> tuple[int, int]:
        """The position, as a sum of offsets, and how many more offsets the broker is known to have."""
        return progress(self._consumer, self._standing)

    def unread(self, read_through: Iterable[tuple[TopicPartition, int]]) -> int:
        """The number of records that the broker is known to have from given offsets on."""
        known = ((self._consumer.highwater(KafkaPartition(*tp)), offset) for tp, offset in read_through)
        return sum(max(end - offset, 0) for end, offset in known if end is not None)


def offset_gone(error: OffsetOutOfRangeError) -> OffsetGone:
    """The typed error for aiokafka's, for the first of its partitions."""
    (partition, offset), *_ = error.args[0].items()
    return OffsetGone(TopicPartition(*partition), offset)


@asynccontextmanager
async def opened(settings: KafkaSettings, fetch: Fetch = ALONE) -> AsyncIterator[Follower]:
    """A connected follower, which is closed at the end.

    Raises:
        LogUnreachable: the cluster does not answer.
        LogRefused: the cluster refuses the connection.
    """
    follower = Follower(settings, fetch)
    await follower.open()
    try:
        yield follower
    finally:
        await follower.close()


async def follow_for_ever(what: str, follow: Follow, settings: KafkaSettings, fetch: Fetch = ALONE) -> None:
    """Follow until cancelled; after any error of the log, begin again with a new connection.

    Args:
        what: the name of what is read, in the plural, for the warning.
        follow: reads on until something fails.
        settings: the cluster's address and credentials.
        fetch: how much the broker returns to one fetch.
    """
    while True:
        try:
            async with opened(settings, fetch) as follower:
                await follow(follower)
        except LogError as error:
            logger.warning("%s cannot be read (%s); starting again", what, error)
        await asyncio.sleep(BEGIN_AGAIN_S)
