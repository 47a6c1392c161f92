"""A view's position in the log, and whether that log is still the one the view was read from.

Checked at start, in this order: 1. the partitions exist · 2. those of facts begin at offset 0 · 3. each holds the
view's offset · 4. its first record is the one the view began with · 5. the record before the offset is the one that
the view read last · 6. the tracking row agrees with the position. If any check fails, the projector stops;
nothing is skipped.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from log.errors import FactsDeleted, LogChanged, TopicMissing
from log.places import Bounds, TopicPartition
from projections.batching import record_id_of
from projections.store.port import Position, ViewStore
from schemas.record import RawRecord
from schemas.topics import Topics

TOPIC_PATIENCE_S = 5.0
RETRY_S = 0.2


class LogReader(Protocol):
    """The part of the log's client that the checks use (`log.kafka.follower.Follower`)."""

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic."""
        ...

    async def bounds(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """The bounds of each partition."""
        ...

    async def read_one(self, partition: TopicPartition, offset: int) -> RawRecord:
        """The record at an offset."""
        ...


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a view is in the log: the next offset of every partition of its topics, and the stored positions."""

    offsets: Mapping[TopicPartition, int]
    positions: Mapping[TopicPartition, Position]
    ends: Mapping[TopicPartition, int]

    def behind(self) -> int:
        """How many offsets lie between the view and the ends of the log."""
        return sum(self.ends[at] - offset for at, offset in self.offsets.items())


async def find_log_position(log: LogReader, store: ViewStore, topics: Topics) -> LogPosition:
    """The view's position, after checking the log against it.

    The dead-letter topic is read too. It loses its beginning after 30 days, which the view tolerates.

    Raises:
        FactsDeleted: the first facts of a partition are gone.
        LogChanged: the log is shorter than what the view has read, or is another log.
        TopicMissing: a topic does not exist.
        LogUnreachable: no broker answers.
    """
    names = (topics.executions, topics.definitions, topics.dead_letters)
    partitions = [at for name in names for at in await _existing(log, name)]
    stored = {at.tp: at for at in store.positions()}
    for partition in stored.keys() - set(partitions):
        raise LogChanged(partition, "no longer exists")
    bounds = await log.bounds(partitions)
    check_begun(topics, bounds)
    offsets: dict[TopicPartition, int] = {}
    for partition in partitions:
        position, held = stored.get(partition), bounds[partition]
        if partition.topic == topics.dead_letters:
            offsets[partition] = _of_forgetful(partition, position, held)
        elif position is not None:
            await _check(log, store, partition, position, held)
            offsets[partition] = position.next_offset
        else:
            offsets[partition] = 0
    return LogPosition(offsets, stored, {at: bounds[at].end for at in partitions})


def check_begun(topics: Topics, held: Mapping[TopicPartition, Bounds]) -> None:
    """Check that no first facts were deleted.

    Raises:
        FactsDeleted: a partition of facts begins behind offset 0.
    """
    for partition, bounds in sorted(held.items()):
        if partition.topic in topics.facts and bounds.first != 0:
            raise FactsDeleted(partition, *bounds)


def first_position(partition: TopicPartition, first: RawRecord) -> Position:
    """The position of a partition that is new to the view, made from its first record."""
    return Position(*partition, record_id_of(first))


async def _existing(log: LogReader, topic: str) -> list[TopicPartition]:
    # Not every broker may have heard yet of a topic that was just created.
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + TOPIC_PATIENCE_S
    while True:
        try:
            return await log.partitions(topic)
        except TopicMissing:
            if loop.time() > give_up_at:
                raise
            await asyncio.sleep(RETRY_S)


def _of_forgetful(partition: TopicPartition, position: Position | None, bounds: Bounds) -> int:
    offset = bounds.first if position is None else max(position.next_offset, bounds.first)
    if offset > bounds.end:
        raise LogChanged(partition, f"ends at offset {bounds.end}, but the view has read up to {offset}")
    return offset


async def _check(
    log: LogReader, store: ViewStore, partition: TopicPartition, position: Position, bounds: Bounds
) -> None:
    offset = position.next_offset
    if offset > bounds.end:
        raise LogChanged(partition, f"ends at offset {bounds.end}, but the view has read up to {offset}")
    if record_id_of(await log.read_one(partition, 0)) != position.topic_id:
        raise LogChanged(partition, "was recreated after the view was built")
    last = await log.read_one(partition, offset - 1)
    if last.offset != offset - 1 or record_id_of(last) != position.record_id:
        raise LogChanged(
            partition, f"has a record at offset {offset - 1} that is not the one that the view has read"
        )
    if store.tracked(position) != offset:
        raise LogChanged(partition, f"is tracked at another offset than {offset}")
