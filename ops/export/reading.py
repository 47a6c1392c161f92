"""Reading one partition of the log into files, round by round."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from log.places import TopicPartition
from log.port import Log
from ops.export.layout import Format
from ops.export.parts import Move, Parts
from ops.export.rows import Counts, PartitionRows
from ops.export.state import Position
from projections.batching import record_id_of
from schemas.audit import TopicRole
from schemas.event_signatures import LogSignatures
from schemas.term import rule_of

# What a killed export reads again at most. With more, files are larger and fewer.
ROUND_RECORDS = 250_000


class Stretch(NamedTuple):
    """What is to be read of a partition: from a position up to `end`, the first offset not to read."""

    tp: TopicPartition
    role: TopicRole
    begin: Position
    end: int

    @property
    def offsets(self) -> int:
        """How many offsets that are."""
        return self.end - self.begin.next_offset


class Round(NamedTuple):
    """What was read of a partition and is complete in the staging folder: the position behind it, and its files."""

    tp: TopicPartition
    position: Position
    moves: list[Move]
    counts: Counts


class Work(NamedTuple):
    """How stretches are read.

    Attributes:
        staging: where files are written.
        form: their format.
        signatures: verifies which records a decider signed; None if they are not verified.
        round_records: the number of records after which a round ends.
    """

    staging: Path
    form: Format
    signatures: LogSignatures | None
    round_records: int = ROUND_RECORDS


async def rounds(
    log: Log, work: Work, stretch: Stretch, moved: Callable[[int], None]
) -> AsyncGenerator[Round, None]:
    """Read a stretch of a partition, to its end or to the first fact that a newer version wrote.

    Args:
        log: a connected log.
        work: how to read.
        stretch: what to read.
        moved: called with the number of offsets that were passed since the last call.

    Raises:
        LogError: the log cannot be read; see its subclasses.
        OSError: a file cannot be written.
    """
    tp, position = stretch.tp, stretch.begin
    reader = PartitionRows(tp.topic, stretch.role, rule_of(work.signatures, tp.topic, position.claim))
    parts = Parts(work.staging, stretch.role, work.form)
    try:
        async with aclosing(log.read(tp, position.next_offset, stretch.end)) as chunks:
            async for chunk in chunks:
                parts.add(reader.read(chunk))
                if taken := reader.taken_of(chunk):
                    moved(taken[-1].offset + 1 - position.next_offset)
                    position = Position(taken[-1].offset + 1, reader.claim, record_id_of(taken[-1]))
                if reader.is_stopped:
                    break
                if reader.counts.records >= work.round_records:
                    yield Round(tp, position, parts.finish(), reader.take_counts())
        if reader.counts.records or reader.is_stopped:
            yield Round(tp, position, parts.finish(), reader.take_counts())
        if not reader.is_stopped:
            moved(stretch.end - position.next_offset)
    finally:
        parts.abandon()
