"""What people answered to calls that operators planted."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, TableOf
from projections.tables.common import (
    Agent,
    AtMs,
    CallId,
    EventId,
    ExecutionId,
    HoldId,
    LogOffset,
    LogPartition,
    Project,
    Subject,
    Tenant,
    Tool,
)


class ProbeAnswerRow(TypedDict):
    """One row for each person who answered to a planted call (docs/probes.md), made as its hold ends."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    number: Annotated[int, "Number of the answer among those to this call, from 1."]
    execution_id: ExecutionId
    call_id: CallId
    hold_id: HoldId
    agent: Agent
    tool: Tool
    subject: Subject
    person: Annotated[
        str | None, "The principal that the subject is an account of; null if none is published."
    ]
    decision: Annotated[str, "The answer: approve, edit, reject or respond."]
    caught: Annotated[int, "1 if the call would not have run as it was planted, else 0."]
    planted_by: Annotated[str, "The operator who planted the call."]
    log_partition: LogPartition
    log_offset: LogOffset


PROBE_ANSWERS = TableOf(
    "probe_answers",
    ProbeAnswerRow,
    key=("tenant", "project", "at_ms", "event_id", "number"),
    indices=(Index("probe_answers_by_subject", ("tenant", "project", "subject", "at_ms")),),
    time="at_ms",
)
