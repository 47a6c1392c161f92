"""The audit trail and its trees."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, Offer, TableOf
from projections.tables.common import (
    AtMs,
    CallId,
    Digest,
    DwellMs,
    EventId,
    ExecutionId,
    Feedback,
    HoldId,
    LogOffset,
    LogPartition,
    Subject,
    Tenant,
    Topic,
    ViewDigest,
)


class AuditRow(TypedDict):
    """The rows of audit without the result of the call; read audit instead."""

    tenant: Tenant
    project: Annotated[str, "The project; empty for acts that concern the whole tenant."]
    at_ms: AtMs
    event_id: EventId
    subject: Subject
    action: Annotated[str, "What was done."]
    execution_id: ExecutionId | None
    call_id: CallId | None
    hold_id: HoldId | None
    digest: Digest
    before: Annotated[Json | None, "JSON of the arguments or the value before."]
    after: Annotated[Json | None, "JSON of the arguments or the value after."]
    feedback: Feedback
    view_digest: ViewDigest | None
    dwell_ms: DwellMs | None
    log_partition: LogPartition
    log_offset: LogOffset


AUDIT_ENTRIES = TableOf(
    "audit_entries",
    AuditRow,
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(
        Index("audit_by_subject", ("tenant", "project", "subject", "at_ms", "event_id")),
        Index("audit_by_event", ("tenant", "event_id")),
    ),
    time="at_ms",
)


class ShownAuditRow(AuditRow):
    """Who did or decided what: one row for each act of authority, and for each refused attempt."""

    result: Annotated[str | None, "How the call ended; null if it has not."]
    result_output: Annotated[Json | None, "JSON that the tool returned."]
    result_error: Annotated[str | None, "Why it did not succeed."]
    result_at_ms: Annotated[Moment | None, "When it ended."]


AUDIT = Offer("audit", ShownAuditRow)


class TreeRow(TypedDict):
    """One row for each audit tree (docs/audit.md)."""

    tenant: Tenant
    topic: Topic
    log_partition: LogPartition
    size: Annotated[int, "Number of its leaves."]
    last_offset: Annotated[int, "Offset of the last leaf."]


AUDIT_TREES = TableOf("audit_trees", TreeRow, key=("tenant", "topic", "log_partition"))


class TileRow(TypedDict):
    """The hashes of the audit trees, up to 256 in a row."""

    tenant: Tenant
    topic: Topic
    log_partition: LogPartition
    level: Annotated[
        int, "0: leaves; each level above has the roots of the complete tiles of the level below."
    ]
    number: Annotated[int, "Number of the tile in its level."]
    first_offset: Annotated[int, "Offset of the first leaf; -1 above level 0."]
    hashes: Annotated[bytes, "The hashes, 32 bytes each, concatenated."]
    offsets: Annotated[bytes, "The leaves' offsets, 8 bytes each, big-endian."]


AUDIT_TILES = TableOf(
    "audit_tiles",
    TileRow,
    key=("tenant", "topic", "log_partition", "level", "number"),
    indices=(
        Index(
            "audit_tiles_by_offset", ("tenant", "topic", "log_partition", "first_offset"), where="level = 0"
        ),
    ),
)
