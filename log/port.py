"""The log as the writer needs it: a small port, so that another client can take Kafka's place.

Two implementations, `memory.log.MemoryLog` and `kafka.log.KafkaLog`, run one behaviour suite
(`tests/log/test_log_behaviour.py`, `test_feed_behaviour.py`). Whoever implements it promises:

1. A batch is appended whole or not at all, at contiguous offsets.
2. What `append` acknowledged is inside `bounds` and can be read at once.
3. Offsets of a partition only grow. They may have gaps, so nobody counts records by subtracting offsets.
4. Nothing is skipped: an offset that the log no longer has, or does not have yet, is `LogTruncated`.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from log.places import Bounds, TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics


class Appender(Protocol):
    """Appends batches for one worker, to any partition, one after the other on each partition.

    Once an append failed, was cancelled or took too long, the appender is spoiled: every later append raises
    `AppendFailed` without sending anything.
    """

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        """Append the records as one batch: all of them at contiguous offsets, or none.

        Args:
            tp: where to; appends to different partitions may run at the same time.
            records: at least one.

        Returns:
            The offset of the first record, as the log acknowledged it.

        Raises:
            BatchTooLarge: nothing was sent, the appender is still good.
            AppendFailed: the outcome is unknown, the appender is spoiled. A cancelled append spoils it too.
        """
        ...

    async def abandon(self) -> None:
        """Let go of it within about 2 s, whatever is still under way. Never raises; may be called again."""
        ...


class CommandFeed(Protocol):
    """The commands of the partitions that the group assigned to this worker.

    The group only assigns: that another worker no longer writes is for the log to fence, by the term rule.
    """

    async def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[RawRecord]]:
        """The next records of the partitions that were started and are not paused.

        Args:
            timeout_ms: how long to wait for the first record, in milliseconds; 0 only looks.

        Returns:
            Records in offset order by partition; empty when none came, or when the assignment changed.

        Raises:
            LogTruncated: a partition does not hold the offset that it should go on from.
            MemberReplaced: another joined under this member's name; it never takes the place back.
            LogUnreachable: the log is lost for good.
        """
        ...

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are this worker's now; look again after every poll.

        A partition that went and came back between two looks was never gone: it goes on where it was. If another
        worker wrote meanwhile, the log tells.
        """
        ...

    def behind(self) -> int:
        """Commands of the started partitions that the log is known to hold and that were not delivered yet."""
        ...

    def held_back(self) -> Mapping[TopicPartition, int]:
        """Started partitions with an open transaction, and from which offset on it keeps them from delivery."""
        ...

    def start_from(self, tp: TopicPartition, offset: int) -> None:
        """Deliver a partition from an offset on; until then a newly assigned partition delivers nothing.

        A partition that stays assigned over a rebalance goes on where it was. Called again, it jumps there.
        For a partition that was taken away meanwhile it does nothing.
        """
        ...

    def pause(self, tp: TopicPartition) -> None:
        """Deliver nothing of a partition until `resume`; it keeps its place."""
        ...

    def resume(self, tp: TopicPartition) -> None:
        """Take back `pause`. A partition that was never started stays silent."""
        ...

    async def close(self) -> None:
        """Leave the group, so that others take over at once. Never raises; may be called again."""
        ...


class Log(Protocol):
    """A log of topics with partitions; connects by itself at first use."""

    @property
    def topics(self) -> Topics:
        """The names of its topics."""
        ...

    async def topic_id(self, topic: str) -> str:
        """What names this very topic: one recreated under the same name has another id.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: nobody answers.
        """
        ...

    async def partition_count(self, topic: str) -> int:
        """How many partitions a topic has now.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: nobody answers.
        """
        ...

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """The first offset and the high watermark (one past the last offset); equal when it is empty.

        Raises:
            TopicMissing: there is no such partition.
            LogUnreachable: nobody answers.
        """
        ...

    def read(self, tp: TopicPartition, start: int, stop: int) -> AsyncGenerator[Sequence[RawRecord], None]:
        """Exactly the records whose offset is in [start, stop), in order, in chunks.

        Close it (`contextlib.aclosing`) when leaving early.

        Raises:
            LogTruncated: `start` is before the first offset or `stop` behind the high watermark.
            TopicMissing: there is no such partition.
            LogUnreachable: nobody answers, or nothing came for too long.
        """
        ...

    def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        """Records of several partitions from given offsets on, without end and without a group.

        Args:
            topic: its name.
            starts: partition → the first offset wanted. The high watermark is allowed: what comes next.

        Returns:
            (partition, records in offset order), as they come; it ends only when the log is closed. Close it
            (`contextlib.aclosing`) when leaving.

        Raises:
            LogTruncated: an offset is not there, at the start or later.
            TopicMissing: there is no such partition.
            LogUnreachable: nobody answers at the start. A broker lost later is waited for.
        """
        ...

    async def appender(self) -> Appender:
        """A fresh appender, whose batches every replica must have before they are acknowledged.

        Raises:
            LogUnreachable: nobody answers.
        """
        ...

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        """Append one record outside of the writer's discipline: a nudge, a dead letter, a snapshot's chunk.

        Repeated until it is acknowledged or time is up, so it may be there twice: its id must tell.

        Returns:
            The offset of the acknowledged record.

        Raises:
            BatchTooLarge: it does not fit; nothing was sent.
            TopicMissing: there is no such partition.
            LogUnreachable: it was not acknowledged in time.
        """
        ...

    async def send_stamped(self, tp: TopicPartition, record: OutRecord) -> int:
        """Append one record as `send` does, where the topic has the broker's time.

        Returns:
            The time that the broker stamped it with, in milliseconds since the epoch.

        Raises:
            TopicMissing: there is no such partition.
            LogUnreachable: it was not acknowledged in time.
        """
        ...

    async def feed(self, group: str, member: str, topics: Sequence[str]) -> CommandFeed:
        """Join a group that shares the partitions of the topics.

        Args:
            group: its name; every member asks for the same topics.
            member: its name in the group, the same each time it is started. Whoever joins under it takes the place
                of the one that has it, with its partitions and at once: no session has to end.
            topics: with the commands.

        Raises:
            TopicMissing: a topic does not exist.
            MemberReplaced: another took its place while it joined.
            LogUnreachable: nobody answers.
        """
        ...

    async def close(self) -> None:
        """Let go of every connection; appenders, feeds and tails end with it. May be called again."""
        ...
