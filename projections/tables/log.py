"""Tables of the whole installation: how far the log is read and judged, and records that could not be read."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Moment, TableOf
from projections.tables.common import AtMs, Detail, LogOffset, LogPartition, Topic


class AdoptionRow(TypedDict):
    """By which definitions each partition of the runs judges."""

    log_partition: LogPartition
    through_offset: Annotated[int, "Offset of the newest definition that counts there."]
    at_ms: Annotated[Moment, "When its decider adopted it; events after log_offset are judged by it."]
    log_offset: Annotated[int, "The record that says so."]


ADOPTIONS = TableOf("adoptions", AdoptionRow, key=("log_partition",))


class SkippedRow(TypedDict):
    """Records of events that the projector could not read; it should be empty."""

    topic: Topic
    log_partition: LogPartition
    log_offset: LogOffset
    reason: Annotated[str, "Why it was not read."]
    detail: Detail


SKIPPED_RECORDS = TableOf("skipped_records", SkippedRow, key=("topic", "log_partition", "log_offset"))


class DeadLetterRow(TypedDict):
    """What deciders could not read or believe; the log keeps them for 30 days."""

    topic: Annotated[str, "The topic of the original."]
    log_partition: Annotated[int, "Partition of the original."]
    log_offset: Annotated[int, "Offset of the original."]
    at_ms: AtMs
    tenant: Annotated[str, "Whose, as far as the key tells."]
    log_key: Annotated[str, "Key of the original."]
    reason: Annotated[str, "Why it was not taken."]
    detail: Detail


DEAD_LETTERS = TableOf(
    "dead_letters",
    DeadLetterRow,
    key=("topic", "log_partition", "log_offset"),
    indices=(Index("dead_letters_by_tenant", ("tenant", "at_ms")),),
    time="at_ms",
)


class PositionRow(TypedDict):
    """Up to where this view has read."""

    source: Annotated[str, "Names the partition, and the very topic."]
    topic: Topic
    log_partition: LogPartition
    topic_id: Annotated[str, "The id of the partition's first record."]
    next_offset: Annotated[int, "Offset that is read next."]
    claim: Annotated[int, "The term in force there."]
    record_id: Annotated[str, "The last record that was read."]


POSITIONS = TableOf("placet_positions", PositionRow, key=("source",))
