"""The events."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, TableOf
from projections.tables.common import (
    AtMs,
    CommandDigest,
    CommandId,
    EventId,
    ExecutionId,
    LogOffset,
    LogPartition,
    Project,
    Tenant,
)


class EventRow(TypedDict):
    """Every event that counts, of every run, in full."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    log_partition: LogPartition
    log_offset: LogOffset
    version: Annotated[int, "Number of the event in its run."]
    event_id: EventId
    type: Annotated[str, "The event's type."]
    at_ms: AtMs
    term: Annotated[int, "The term of the decider that wrote it."]
    command_id: CommandId
    command_digest: CommandDigest
    command_offset: Annotated[int, "Offset of the command in its partition."]
    body: Annotated[Json, "JSON of the event's fields."]


EVENTS = TableOf(
    "events",
    EventRow,
    key=("tenant", "project", "execution_id", "log_offset"),
    indices=(
        Index("events_by_time", ("tenant", "project", "at_ms")),
        # Verdicts, messages and lists name facts by their places.
        Index("events_by_place", ("tenant", "project", "log_partition", "log_offset")),
    ),
    time="at_ms",
)
