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
    RiskLevel,
    RiskRequired,
    Subject,
    Tenant,
    Tool,
    ViewDigest,
)


class VoteRow(TypedDict):
    """One row for each vote of a person on a hold, including votes that were refused."""

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
    revision: Annotated[int | None, "The revision that the vote is about; null if it was refused."]
    digest: Annotated[str, "The digest that the person named."]
    subject: Subject
    person: Annotated[
        str | None, "The principal that the subject is an account of; null if none is published."
    ]
    roles: Annotated[Json | None, "JSON list of the roles under which the vote was given."]
    decision: Annotated[str, "The vote: approve, edit, reject or respond."]
    outcome: Annotated[
        str,
        "decided: it ended the hold; counted: more votes are needed; lost: the hold had "
        "ended before; refused: it was not permitted.",
    ]
    code: Code | None
    detail: Annotated[str | None, "The details that the refused person was given."]
    decision_id: Annotated[str | None, "Id of the vote; null if it was refused."]
    winning_decision_id: Annotated[
        str | None, "The decision that had ended the hold, if the vote came too late."
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
    indices=(
        Index("votes_by_hold", ("tenant", "project", "hold_id", "at_ms")),
        Index(
            "votes_of_call",
            ("tenant", "project", "execution_id", "call_id", "revision"),
            where="outcome = 'decided'",
        ),
    ),
    time="at_ms",
)


class LostRaceRow(TypedDict):
    """The votes that came after their hold had ended, each with the vote that ended it; made from votes."""

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
    decision: Annotated[str, "The late vote."]
    code: Code | None
    winning_decision_id: Annotated[str | None, "The decision that had ended the hold."]
    won_by: Annotated[str | None, "Who decided; null if no person did, for example after a timeout."]
    won_decision: Annotated[str | None, "What was decided."]
    won_at_ms: Annotated[Moment | None, "When it was decided."]
    late_ms: Annotated[int | None, "How much later the late vote came, in milliseconds."]


LOST_RACES = Offer("lost_races", LostRaceRow)


class EditRow(TypedDict):
    """One row for each difference that a person's edit made in a call's arguments (RFC 6902)."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    call_id: CallId
    revision: Annotated[int, "The revision that the edit made."]
    number: Annotated[int, "Number of the difference within the edit, from 1."]
    at_ms: AtMs
    agent: Agent
    tool: Tool
    hold_id: HoldId
    decision_id: Annotated[str, "Id of the edit, as in votes."]
    subject: Annotated[str, "Who edited."]
    op: Annotated[str, "add, remove or replace."]
    path: Annotated[
        str, "JSON Pointer to what changed; of an edit with very many differences, only the top-level names."
    ]
    before: Annotated[Json | None, "JSON of the value before; null if there was none."]
    after: Annotated[Json | None, "JSON of the value after; null if there is none."]
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
    """One row for each fact that trust counts about an agent's use of a tool (docs/trust.md)."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    at_ms: AtMs
    event_id: EventId
    kind: Annotated[
        str,
        "success, failure, unknown, approval, edit, rejection, withdrawal, revocation or impact.",
    ]
    trust_class: Annotated[
        str | None,
        "The class of calls for which it counts; null if it counts for none. A failure counts only after the first "
        "other fact of the class in its log_partition (by log_offset), which its own row does not say.",
    ]
    fact: Annotated[
        str | None,
        "What it counts as for the class, if it does (trust_class): approval, edit, rejection, correction, "
        "withdrawal, revocation, failure or impact.",
    ]
    words_of: Annotated[Json | None, "JSON list of the accounts whose word it is."]
    requester: Annotated[str | None, "The account that proposed the call."]
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


class TrustVerdictRow(TypedDict):
    """One row for each verdict for which a policy's adaptive block weighed trust (docs/trust.md)."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    agent: Agent
    tool: Tool
    execution_id: ExecutionId
    call_id: CallId
    revision: Annotated[int, "The call's revision that was judged."]
    trust_class: Annotated[str, "The class of calls whose trust was weighed."]
    result: Annotated[str, "What became of the hold: released, sampled or asked."]
    why: Annotated[str, "Why, in a sentence."]
    lower_bound: Annotated[float | None, "The trust; null if it was not complete."]
    required: RiskRequired
    risk_level: RiskLevel
    sample_rate: Annotated[float, "The share of such calls that is asked all the same."]
    draw: Annotated[float | None, "The draw; null if none was made."]
    log_partition: LogPartition
    log_offset: LogOffset


TRUST_VERDICTS = TableOf(
    "trust_verdicts",
    TrustVerdictRow,
    key=("tenant", "project", "at_ms", "event_id"),
    indices=(
        Index("trust_verdicts_of_call", ("tenant", "project", "execution_id", "call_id")),
        Index("trust_verdicts_sampled", ("tenant", "project", "at_ms"), where="result = 'sampled'"),
    ),
    time="at_ms",
)


class TrustRow(TypedDict):
    """The evidence about an agent's use of a tool, counted up to each piece of it; made from evidence."""

    tenant: Tenant
    project: Project
    agent: Agent
    tool: Tool
    at_ms: AtMs
    event_id: EventId
    kind: Annotated[str, "The evidence: success, failure, unknown, approval, edit or rejection."]
    successes: Annotated[int, "Runs that succeeded, up to this row."]
    failures: Annotated[int, "Runs that failed, up to this row."]
    unknowns: Annotated[int, "Runs with an unknown outcome, up to this row."]
    approvals: Annotated[int, "Calls that people approved as proposed, up to this row."]
    edits: Annotated[int, "Calls that people edited, up to this row."]
    rejections: Annotated[int, "Calls that people rejected, up to this row."]
    evidence: Annotated[int, "All pieces of evidence, up to this row."]
    share: Annotated[float, "Successes and approvals, divided by all evidence."]


TRUST = Offer("trust", TrustRow)
