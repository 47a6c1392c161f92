"""The storage of a memory log: topics, their partitions, and the signal that something changed."""

import asyncio
import uuid
from bisect import bisect_left
from collections.abc import Sequence

from log.errors import BatchTooLarge, LogTruncated
from log.places import TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import MAX_MESSAGE_BYTES

CHUNK_RECORDS = 1000


class Signal:
    """Wakes the waiting tasks, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next `notify`; check the state after it, since it only signals that something changed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def notify(self) -> None:
        """Wake every task that waits now."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class Partition:
    """The records of one partition, in offset order; offsets may have gaps."""

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.first = 0
        self.end = 0
        self._records: list[RawRecord] = []

    def append(self, records: Sequence[OutRecord], now_ms: int) -> int:
        """Append a batch; returns its base offset."""
        base = self.end
        self._records.extend(
            RawRecord(self.tp.partition, base + i, now_ms, record.key, record.value, record.headers)
            for i, record in enumerate(records)
        )
        self.end += len(records)
        return base

    def slice(self, start: int, stop: int) -> list[RawRecord]:
        """Up to `CHUNK_RECORDS` records with offsets in [start, stop); empty if only a gap is left.

        Raises:
            LogTruncated: `start` is not within the partition's bounds.
        """
        self.check(start)
        index = self._index(start)
        return self._records[index : min(index + CHUNK_RECORDS, self._index(stop))]

    def check(self, wanted: int) -> None:
        """Refuse an offset that is not within the partition's bounds; the high watermark is within.

        Raises:
            LogTruncated: the offset is outside.
        """
        if not self.first <= wanted <= self.end:
            raise LogTruncated(self.tp, wanted, self.first, self.end)

    def skip(self, count: int) -> None:
        """Leave a gap of `count` offsets, as control records and compaction do."""
        self.end += count

    def delete_before(self, offset: int) -> None:
        """Delete the records before `offset`, as retention does."""
        del self._records[: self._index(offset)]
        self.first = offset

    def truncate(self, end: int) -> None:
        """Delete everything from `end` on, like a loss of acknowledged records."""
        del self._records[self._index(end) :]
        self.end = end

    def _index(self, offset: int) -> int:
        return bisect_left(self._records, offset, key=lambda record: record.offset)


class Topic:
    """One topic with one id."""

    def __init__(self, name: str, partitions: int, generation: int = 0) -> None:
        self.name = name
        self.generation = generation
        self.topic_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"memory:{name}/{generation}"))
        self.partitions = [Partition(TopicPartition(name, number)) for number in range(partitions)]


def check_batch(tp: TopicPartition, records: Sequence[OutRecord]) -> None:
    """Refuse records that are not one valid batch.

    Raises:
        ValueError: there are no records.
        BatchTooLarge: the records have too many bytes.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    size_bytes = sum(record.size_bytes() for record in records)
    if size_bytes > MAX_MESSAGE_BYTES:
        raise BatchTooLarge(tp, size_bytes)
