"""A log in memory: no broker, no clock, no randomness. For simulations, trials and the behaviour suite.

It gives the guarantees of `log.port`. Waiting tasks are woken by futures of the running loop, in the order in
which they began to wait: one seed on a loop with simulated time gives one history.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from log.errors import AppendFailed, LogTruncated, LogUnreachable, TopicMissing
from log.memory.feed import Group, MemoryFeed
from log.memory.storage import Partition, Signal, Topic, check_batch
from log.places import Bounds, TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics


class MemoryLog:
    """All topics of one installation, held by this object.

    Args:
        topics: their names.
        partitions: the partition count of topics whose specification has none.
        now_ms: the append time of every record, in milliseconds since the epoch.
    """

    def __init__(self, topics: Topics, partitions: int, now_ms: Callable[[], int]) -> None:
        self._names = topics
        self._now_ms = now_ms
        self._topics = {spec.name: Topic(spec.name, spec.partitions or partitions) for spec in topics.specs()}
        self._groups: dict[str, Group] = {}
        self._signal = Signal()
        self._closed = False

    @property
    def topics(self) -> Topics:
        """The names of its topics."""
        return self._names

    async def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topic(topic).topic_id

    async def partition_count(self, topic: str) -> int:
        """See `Log.partition_count`."""
        return len(self._topic(topic).partitions)

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """See `Log.bounds`."""
        partition = self.partition(tp)
        return Bounds(partition.first, partition.end)

    async def read(
        self, tp: TopicPartition, start: int, stop: int
    ) -> AsyncGenerator[Sequence[RawRecord], None]:
        """See `Log.read`."""
        self.partition(tp).check(stop)
        self.partition(tp).check(start)
        while chunk := self.partition(tp).slice(start, stop):
            yield chunk
            start = chunk[-1].offset + 1
            await asyncio.sleep(0)

    async def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        """See `Log.tail`."""
        followed = self._topic(topic)
        positions = {number: starts[number] for number in sorted(starts)}
        while not self._closed:
            idle = True
            for number, start in positions.items():
                partition = self.partition(TopicPartition(topic, number))
                if self._topic(topic) is not followed:
                    raise LogTruncated(partition.tp, start, partition.first, partition.end)
                if records := partition.slice(start, partition.end):
                    positions[number] = records[-1].offset + 1
                    idle = False
                    yield number, records
            if idle:
                await self._signal.wait()

    async def appender(self) -> "MemoryAppender":
        """See `Log.appender`."""
        self._check_open()
        return MemoryAppender(self)

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        """See `Log.send`."""
        check_batch(tp, [record])
        await asyncio.sleep(0)
        return self.land(tp, [record])

    async def send_stamped(self, tp: TopicPartition, record: OutRecord) -> int:
        """See `Log.send_stamped`."""
        offset = await self.send(tp, record)
        return self.partition(tp).slice(offset, offset + 1)[0].timestamp_ms

    async def feed(self, group: str, member: str, topics: Sequence[str]) -> MemoryFeed:
        """See `Log.feed`."""
        partitions = [partition.tp for topic in topics for partition in self._topic(topic).partitions]
        members = self._groups.setdefault(group, Group(group, partitions))
        feed = MemoryFeed(member, members, self.partition, self._signal)
        members.join(feed)
        return feed

    async def close(self) -> None:
        """See `Log.close`."""
        self._closed = True
        self._signal.notify()

    def land(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        """Append a batch at once: for an appender, or later for a batch whose append counted as failed.

        Returns:
            Its base offset.
        """
        base = self.partition(tp).append(records, self._now_ms())
        self._signal.notify()
        return base

    def partition(self, tp: TopicPartition) -> Partition:
        """The stored records of one partition.

        Raises:
            TopicMissing: there is no such partition.
        """
        partitions = self._topic(tp.topic).partitions
        if not 0 <= tp.partition < len(partitions):
            raise TopicMissing(tp.topic)
        return partitions[tp.partition]

    def recreate(self, topic: str) -> None:
        """Replace a topic by an empty one of the same name."""
        old = self._topic(topic)
        self._topics[topic] = Topic(topic, len(old.partitions), old.generation + 1)
        self._signal.notify()

    def _topic(self, name: str) -> Topic:
        self._check_open()
        if name not in self._topics:
            raise TopicMissing(name)
        return self._topics[name]

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnreachable("memory", "it is closed")


class MemoryAppender:
    """See `Appender`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._spoiled = ""

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        """See `Appender.append`."""
        self._check(tp)
        check_batch(tp, records)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._spoiled = "an append was cancelled"
            raise
        self._check(tp)
        try:
            return self._log.land(tp, records)
        except (TopicMissing, LogUnreachable) as error:
            self._spoiled = str(error)
            raise AppendFailed(tp, self._spoiled) from error

    async def abandon(self) -> None:
        """See `Appender.abandon`."""
        self._spoiled = self._spoiled or "it was abandoned"

    def _check(self, tp: TopicPartition) -> None:
        if self._spoiled:
            raise AppendFailed(tp, self._spoiled)
