"""The log as the writer needs it: a small port, so that another client library can be used.

Two implementations, `memory.log.MemoryLog` and `kafka.log.KafkaLog`, pass the same behaviour suite
(`tests/log/test_log_behaviour.py`, `test_feed_behaviour.py`). Every implementation guarantees:

1. A batch is appended whole or not at all, at contiguous offsets.
2. Records that `append` acknowledged are inside `bounds` and can be read at once.
3. Offsets of a partition only grow. They may have gaps, so the difference of two offsets is not a record count.
4. Nothing is skipped: an offset that the log no longer has, or does not have yet, is `LogTruncated`.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from log.places import Bounds, TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics


class Appender(Protocol):
    """Appends batches for one worker, to any partition, one after the other on each partition.

    After an append that failed, was cancelled or took too long, the appender is spoiled: every later append raises
    `AppendFailed` without sending anything.
    """

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        """Append the records as one batch: all of them at contiguous offsets, or none.

        Args:
            tp: the target partition; appends to different partitions can run at the same time.
            records: at least one.

        Returns:
            The offset of the first record, as the log acknowledged it.

        Raises:
            BatchTooLarge: nothing was sent; the appender can still be used.
            AppendFailed: the outcome is unknown, the appender is spoiled. A cancelled append spoils it too.
        """
        ...

    async def abandon(self) -> None:
        """Close the appender within about 2 s, whatever is in flight. Never raises; can be called again."""
        ...


class CommandFeed(Protocol):
    """The commands of the partitions that the group assigned to this worker.

    The group only assigns partitions. The log, by the term rule, fences other workers that still write.
    """

    async def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[RawRecord]]:
        """The next records of the partitions that were started and are not paused.

        Args:
            timeout_ms: how long to wait for the first record, in milliseconds; 0 does not wait.

        Returns:
            Records in offset order by partition; empty if none came or the assignment changed.

        Raises:
            LogTruncated: a partition does not contain the offset at which to continue.
            MemberReplaced: another process joined under this member's name; this one never takes the place back.
            LogUnreachable: the log is permanently lost.
        """
        ...

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned to this worker now; call it again after every poll.

        A partition that was revoked and reassigned between two calls was never gone: it continues where it was. If
        another worker wrote meanwhile, the records of the log show it.
        """
        ...

    def behind(self) -> int:
        """The number of commands of the started partitions that the log is known to have and did not deliver yet."""
        ...

    def held_back(self) -> Mapping[TopicPartition, int]:
        """Started partitions with an open transaction, and the offset from which it prevents delivery."""
        ...

    def start_from(self, tp: TopicPartition, offset: int) -> None:
        """Deliver a partition from an offset on; before this call a newly assigned partition delivers nothing.

        A partition that stays assigned over a rebalance continues where it was. Another call moves it to the offset.
        For a partition that was revoked meanwhile, the call does nothing.
        """
        ...

    def pause(self, tp: TopicPartition) -> None:
        """Deliver nothing of a partition until `resume`; it keeps its position."""
        ...

    def resume(self, tp: TopicPartition) -> None:
        """End `pause`. A partition that was never started still delivers nothing."""
        ...

    async def close(self) -> None:
        """Leave the group, so that others take over at once. Never raises; can be called again."""
        ...


class Log(Protocol):
    """A log of topics with partitions; connects at first use."""

    @property
    def topics(self) -> Topics:
        """The names of its topics."""
        ...

    async def topic_id(self, topic: str) -> str:
        """The id of a topic: a topic recreated under the same name has another id.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: the log does not answer.
        """
        ...

    async def partition_count(self, topic: str) -> int:
        """The number of partitions that a topic has now.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: the log does not answer.
        """
        ...

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """The first offset and the high watermark (one past the last offset); equal if the partition is empty.

        Raises:
            TopicMissing: there is no such partition.
            LogUnreachable: the log does not answer.
        """
        ...

    def read(self, tp: TopicPartition, start: int, stop: int) -> AsyncGenerator[Sequence[RawRecord], None]:
        """Exactly the records whose offset is in [start, stop), in order, in chunks.

        Close it (`contextlib.aclosing`) when leaving early.

        Raises:
            LogTruncated: `start` is before the first offset, or `stop` is after the high watermark.
            TopicMissing: there is no such partition.
            LogUnreachable: the log does not answer, or no record came for too long.
        """
        ...

    def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        """Records of several partitions from given offsets on, without end and without a group.

        Args:
            topic: its name.
            starts: partition → the first offset to read. The high watermark is allowed: the next record.

        Returns:
            (partition, records in offset order), as they come; it ends only when the log is closed. Close it
            (`contextlib.aclosing`) when leaving.

        Raises:
            LogTruncated: an offset is missing, at the start or later.
            TopicMissing: there is no such partition.
            LogUnreachable: the log does not answer at the start. If a broker is lost later, the tail waits for it.
        """
        ...

    async def appender(self) -> Appender:
        """A new appender; its batches are acknowledged only when every replica has them.

        Raises:
            LogUnreachable: the log does not answer.
        """
        ...

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        """Append one record that does not go through a writer: a nudge, a dead letter, a snapshot's chunk.

        It is repeated until it is acknowledged or time is up, so the log may have it twice: readers go by its id.

        Returns:
            The offset of the acknowledged record.

        Raises:
            BatchTooLarge: the record does not fit; nothing was sent.
            TopicMissing: there is no such partition.
            LogUnreachable: the record was not acknowledged in time.
        """
        ...

    async def send_stamped(self, tp: TopicPartition, record: OutRecord) -> int:
        """Append one record as `send` does, to a topic with the broker's time.

        Returns:
            The broker's timestamp of the record, in milliseconds since the epoch.

        Raises:
            TopicMissing: there is no such partition.
            LogUnreachable: the record was not acknowledged in time.
        """
        ...

    async def feed(self, group: str, member: str, topics: Sequence[str]) -> CommandFeed:
        """Join a group that shares the partitions of the topics.

        Args:
            group: its name; every member subscribes to the same topics.
            member: this process's name in the group, the same at each start. A process that joins under this name
                replaces the present member of that name and gets its partitions at once: no session has to end.
            topics: the topics with the commands.

        Raises:
            TopicMissing: a topic does not exist.
            MemberReplaced: another process replaced this one while it joined.
            LogUnreachable: the log does not answer.
        """
        ...

    async def close(self) -> None:
        """Close every connection; appenders, feeds and tails end with it. Can be called again."""
        ...
