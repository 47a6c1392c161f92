"""Reading Kafka for the views: partitions without a group, from given offsets, nothing skipped.

aiokafka's defaults are unsafe (a group, auto-commit, `latest` for an offset that is gone), so whatever matters is
set by name, for aiokafka 0.14.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from log.errors import LogChanged, LogDamaged, LogError, TopicMissing
from log.kafka.client import KafkaSettings, start, stop
from log.kafka.damage import damage, is_damage
from log.kafka.lag import progress
from schemas.record import RawRecord, raw_record

logger = logging.getLogger(__name__)

READ_TIMEOUT_S = 30.0
POLL_MS = 500
RETRY_S = 0.5
# How much one poll may bring: about this for each partition.
FETCH_BYTES = 1024 * 1024
# Views may be a moment behind (people's answers come from the gateway's own tail), so a busy log is fetched and
# committed in larger pieces: one event at a time costs the broker and this process several times as much.
FETCH_MIN_BYTES = 128 * 1024
FETCH_WAIT_MS = 50


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Bounds(NamedTuple):
    """The first offset of a partition, and one past the last."""

    first: int
    end: int


Polled = list[tuple[Partition, list[RawRecord]]]


class KafkaTail:
    """One consumer, of partitions that are named to it."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._standing: tuple[Partition, ...] = ()
        self._consumer = settings.consumer(
            fetch_min_bytes=FETCH_MIN_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            max_partition_fetch_bytes=FETCH_BYTES,
            max_poll_records=None,
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            LogUnreachable: nobody answers.
            LogRefused: we are not let in.
        """
        await start(self._consumer, self._settings)

    async def close(self) -> None:
        """Let go of the connection within about two seconds. May be called again."""
        await stop(self._consumer)

    async def partitions(self, topic: str) -> list[Partition]:
        """The partitions of a topic, in order.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: nobody answers.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                cluster = await self._consumer._client.fetch_all_metadata()
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from error
        found = cluster.partitions_for_topic(topic)
        if not found:
            raise TopicMissing(topic)
        return [Partition(topic, number) for number in sorted(found)]

    async def bounds(self, partitions: Sequence[Partition]) -> dict[Partition, Bounds]:
        """What each partition holds now.

        Raises:
            LogUnreachable: nobody answers.
        """
        wanted = [KafkaPartition(*partition) for partition in partitions]
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                first = await self._consumer.beginning_offsets(wanted)
                end = await self._consumer.end_offsets(wanted)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from error
        return {Partition(*at): Bounds(first[at], end[at]) for at in wanted}

    def stand_at(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self._standing = tuple(offsets)
        # No await in between: a partition that is assigned without a position asks for a committed one.
        self._consumer.assign([KafkaPartition(*partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(KafkaPartition(*partition), offset)

    def progress(self) -> tuple[int, int]:
        """Where it stands, as a sum of offsets, and how many the broker is known to have behind that."""
        return progress(self._consumer, [KafkaPartition(*at) for at in self._standing])

    async def poll(self, timeout_ms: int = POLL_MS) -> Polled:
        """What came next, by partition in offset order; waits for the first record up to a time.

        A broker that is away is waited for.

        Raises:
            LogChanged: an offset that comes next is not there.
            LogDamaged: the record that comes next is not as it was written.
        """
        try:
            found = await self._consumer.getmany(timeout_ms=timeout_ms)
        except OffsetOutOfRangeError as error:
            (partition, offset), *_ = error.args[0].items()
            raise LogChanged(
                Partition(*partition), f"no longer holds offset {offset}, which is next"
            ) from error
        except KafkaError as error:
            if is_damage(error):
                raise LogDamaged(damage(self._consumer, error)) from error
            logger.warning("Kafka could not be read (%s); trying again", type(error).__name__)
            await asyncio.sleep(RETRY_S)
            return []
        return [(Partition(*at), [raw_record(record) for record in records]) for at, records in found.items()]

    async def position(self, partition: Partition) -> int:
        """The offset that is read next; it also moves over what is no record."""
        found: int = await self._consumer.position(KafkaPartition(*partition))
        return found

    async def read_one(self, partition: Partition, offset: int) -> RawRecord:
        """The first record at an offset or behind it. Moves the tail away from where it stands.

        Raises:
            LogChanged: the offset is not there.
            LogUnreachable: it did not come in time.
        """
        self.stand_at({partition: offset})
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                while not (polled := await self.poll()):
                    pass
        except TimeoutError as error:
            raise self._unreachable(error) from error
        return polled[0][1][0]

    def _unreachable(self, error: Exception) -> LogError:
        return self._settings.translate(error)
