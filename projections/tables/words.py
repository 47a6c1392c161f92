"""Rows that analysts count: votes, edits and evidence, with the SQL views on them."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, Offer, TableOf
from projections.tables.common import (
    Agent,
    AtMs,
    CallId,
    Code,
    DwellMs,
    EventId,
    ExecutionId,
    Feedback,
    HoldId,
    LogOffset,
    LogPartition,
    Project,
    RequestId,
    Subject,
    Tenant,
    Tool,
    ViewDigest,
)


class VoteRow(TypedDict):
    """One row a word of a person on a hold, also one that was refused."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    hold_id: HoldId
    execution_id: ExecutionId
    call_id: CallId | None
    request_id: RequestId | None
    agent: Agent | None
    tool: Tool | None
    revision: Annotated[int | None, "The revision that the word is about; null where it was refused."]
    digest: Annotated[str, "The digest that the person named."]
    subject: Subject
    person: Annotated[str | None, "The principal whose account the subject is; null where none is published."]
    roles: Annotated[Json | None, "JSON list of the roles by which it was given."]
    decision: Annotated[str, "What the word was: approve, edit, reject or respond."]
    outcome: Annotated[
        str,
        "decided: it ended the hold; counted: it waits for others; lost: it came "
        "after the end; refused: it was not let.",
    ]
    code: Code | None
    detail: Annotated[str | None, "What was said to who was refused."]
    decision_id: Annotated[str | None, "Names the word; null where it was refused."]
    winning_decision_id: Annotated[
        str | None, "The decision that was there first, where the word came too late."
    ]
    feedback: Feedback
    view_digest: ViewDigest | None
    dwell_ms: DwellMs | None
    log_partition: LogPartition
    log_offset: LogOffset


VOTES = TableOf(
    "votes",
    VoteRow,
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(Index("votes_by_hold", ("tenant", "project", "hold_id", "at_ms")),),
    time="at_ms",
)


class LostRaceRow(TypedDict):
    """The votes that came after their hold had ended, beside the word that ended it; made of votes."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    hold_id: HoldId
    execution_id: ExecutionId
    call_id: CallId | None
    request_id: RequestId | None
    agent: Agent | None
    tool: Tool | None
    subject: Subject
    decision: Annotated[str, "What the late word was."]
    code: Code | None
    winning_decision_id: Annotated[str | None, "The decision that was there first."]
    won_by: Annotated[str | None, "Who decided; null where nobody did, as when time ran out."]
    won_decision: Annotated[str | None, "What was decided."]
    won_at_ms: Annotated[Moment | None, "When it was decided."]
    late_ms: Annotated[int | None, "How much later the late word came, in milliseconds."]


LOST_RACES = Offer("lost_races", LostRaceRow)


class EditRow(TypedDict):
    """One row a difference that a person's edit made in a call's arguments (RFC 6902)."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    call_id: CallId
    revision: Annotated[int, "The revision that the edit made."]
    number: Annotated[int, "Counts the edit's differences from 1."]
    at_ms: AtMs
    agent: Agent
    tool: Tool
    hold_id: HoldId
    decision_id: Annotated[str, "The edit, in votes."]
    subject: Annotated[str, "Who edited."]
    op: Annotated[str, "add, remove or replace."]
    path: Annotated[
        str, "JSON Pointer to what changed; an edit with very many differences is told by its topmost names."
    ]
    before: Annotated[Json | None, "JSON of what stood there; null where nothing did."]
    after: Annotated[Json | None, "JSON of what stands there now; null where nothing does."]
    feedback: Feedback
    event_id: EventId
    log_partition: LogPartition
    log_offset: LogOffset


EDITS = TableOf(
    "edits",
    EditRow,
    key=("tenant", "project", "execution_id", "call_id", "revision", "number"),
    indices=(Index("edits_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)


class EvidenceRow(TypedDict):
    """One row a fact about how an agent uses a tool: what docs/trust.md counts."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    at_ms: AtMs
    event_id: EventId
    kind: Annotated[str, "success, failure, unknown, approval, edit or rejection."]
    execution_id: ExecutionId
    call_id: CallId
    log_partition: LogPartition
    log_offset: LogOffset


EVIDENCE = TableOf(
    "evidence",
    EvidenceRow,
    key=("tenant", "project", "agent", "tool", "at_ms", "event_id"),
    indices=(Index("evidence_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)


class TrustRow(TypedDict):
    """How much an agent was to be trusted with a tool after each piece of evidence; made of evidence."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    at_ms: AtMs
    event_id: EventId
    kind: Annotated[str, "The evidence: success, failure, unknown, approval, edit or rejection."]
    successes: Annotated[int, "Runs that succeeded, up to here."]
    failures: Annotated[int, "Runs that failed, up to here."]
    unknowns: Annotated[int, "Runs whose outcome nobody knew, up to here."]
    approvals: Annotated[int, "Calls that people approved as proposed, up to here."]
    edits: Annotated[int, "Calls that people edited, up to here."]
    rejections: Annotated[int, "Calls that people rejected, up to here."]
    evidence: Annotated[int, "How much evidence there was, up to here."]
    share: Annotated[float, "Successes and approvals by all evidence."]
    lower_bound: Annotated[float, "What the share is at least, with 95 % confidence (Wilson, one-sided)."]


TRUST = Offer("trust", TrustRow)
