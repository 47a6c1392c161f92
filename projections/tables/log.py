"""Tables of the whole installation: how far the log is read and judged, and records that could not be read."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Moment, TableOf
from projections.tables.common import AtMs, Detail, LogOffset, LogPartition, Topic


class AdoptionRow(TypedDict):
    """The definitions that each partition of the runs judges by."""

    log_partition: LogPartition
    through_offset: Annotated[int, "Offset of the newest definition that the partition has adopted."]
    at_ms: Annotated[Moment, "When its decider adopted it; events after log_offset are judged by it."]
    log_offset: Annotated[int, "Offset of the record that states it."]


ADOPTIONS = TableOf("adoptions", AdoptionRow, key=("log_partition",))


class SkippedRow(TypedDict):
    """Records of events that the projector could not read; normally empty."""

    topic: Topic
    log_partition: LogPartition
    log_offset: LogOffset
    reason: Annotated[str, "Why it was not read."]
    detail: Detail


SKIPPED_RECORDS = TableOf("skipped_records", SkippedRow, key=("topic", "log_partition", "log_offset"))


class DeadLetterRow(TypedDict):
    """Records that deciders could not read or verify; the log keeps them for 30 days."""

    topic: Annotated[str, "The topic of the original record."]
    log_partition: Annotated[int, "Partition of the original record."]
    log_offset: Annotated[int, "Offset of the original record."]
    at_ms: AtMs
    tenant: Annotated[str, "The tenant, as far as the key shows it."]
    log_key: Annotated[str, "Key of the original record."]
    reason: Annotated[str, "Why it was not accepted."]
    detail: Detail


DEAD_LETTERS = TableOf(
    "dead_letters",
    DeadLetterRow,
    key=("topic", "log_partition", "log_offset"),
    indices=(Index("dead_letters_by_tenant", ("tenant", "at_ms")),),
    time="at_ms",
)


class PositionRow(TypedDict):
    """How far this view has read."""

    source: Annotated[str, "Identifies the partition and the topic, including its identity."]
    topic: Topic
    log_partition: LogPartition
    topic_id: Annotated[str, "The id of the partition's first record."]
    next_offset: Annotated[int, "The next offset to read."]
    claim: Annotated[int, "The term in force at that offset."]
    record_id: Annotated[str, "Id of the last record that was read."]


POSITIONS = TableOf("placet_positions", PositionRow, key=("source",))
