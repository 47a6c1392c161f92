"""The holds, some of which are requests."""

from typing import Annotated, TypedDict

from projections.tables.columns import Flag, Index, Json, Moment, TableOf
from projections.tables.common import (
    Adaptive,
    Agent,
    Arguments,
    Asks,
    CallId,
    ClosedAt,
    DeadlineAt,
    DecidedBy,
    Decision,
    DecisionId,
    DecisionType,
    Digest,
    Effect,
    ExecutionId,
    Feedback,
    Fields,
    History,
    HoldId,
    Kind,
    OpenedAt,
    Options,
    PolicyVersion,
    Project,
    ProposedArguments,
    Question,
    RequestId,
    Response,
    Revision,
    RiskLevel,
    RiskParts,
    RiskRequired,
    RiskScore,
    Rules,
    SendersBefore,
    Tenant,
    TimedOut,
    Tool,
    ToolVersion,
    Trust,
    UpdatedAt,
    VerdictDetail,
    VerdictReason,
)


class HoldRow(TypedDict):
    """One row for each hold, a pause for a person's decision; a request is a hold with a request_id."""

    tenant: Tenant
    project: Project
    hold_id: HoldId
    execution_id: ExecutionId
    request: Annotated[
        str | None,
        "What the agent was asked for: the message that it was answering, else the request that its run was started "
        "for.",
    ]
    call_id: CallId | None
    request_id: RequestId | None
    revision: Revision
    digest: Digest
    kind: Kind
    cause: Annotated[str, "policy, request, outcome_unknown or definition_changed."]
    status: Annotated[str, "open, resolved, expired or cancelled."]
    agent: Agent | None
    tool: Tool | None
    tool_version: ToolVersion | None
    arguments: Arguments | None
    reason: Annotated[str | None, "The agent's reason for the call."]
    effect: Effect | None
    rules: Rules | None
    policy_version: PolicyVersion | None
    verdict_reason: VerdictReason | None
    verdict_detail: VerdictDetail | None
    risk_score: RiskScore | None
    risk_level: RiskLevel | None
    risk_parts: RiskParts | None
    risk_required: RiskRequired | None
    trust: Trust | None
    adaptive: Adaptive | None
    history: History | None
    question: Question
    options: Options
    input_schema: Annotated[Json, "JSON Schema of the arguments, for an edit."]
    fields: Fields
    decision_type: DecisionType
    asks: Asks | None
    requester: Annotated[str, "The subject that asked for the decision."]
    senders: SendersBefore | None
    roles: Annotated[Json, "JSON list of the roles that can decide."]
    reviewers: Annotated[Json, "JSON list of those who can decide, by name."]
    excluded: Annotated[Json, "JSON list of the subjects that cannot decide."]
    quorum: Annotated[int, "Number of people who must approve."]
    exclude_requester: Annotated[Flag, "1 if the requester cannot decide."]
    requirements: Annotated[Json | None, "JSON of what each of several rules requires."]
    votes: Annotated[Json, "JSON list of the votes that count; the table votes has a row for each."]
    claimed_by: Annotated[str | None, "Who has claimed it."]
    claimed_until_ms: Annotated[Moment | None, "When the claim ends."]
    assignee: Annotated[str | None, "The person to whom it was delegated."]
    escalated: Annotated[Flag, "1 if it was escalated."]
    opened_at_ms: OpenedAt
    deadline_at_ms: DeadlineAt | None
    on_timeout: Annotated[str, "What happens at the deadline."]
    default_value: Annotated[
        Json | None, "JSON of the answer at the deadline; of a call, JSON of what its agent is sent then."
    ]
    escalate_at_ms: Annotated[Moment | None, "When it escalates."]
    escalate_roles: Annotated[Json, "JSON list of the roles that are asked after the escalation."]
    remind_at_ms: Annotated[Moment | None, "When people are reminded of it; null: never, or they were."]
    on_reject: Annotated[str, "What a rejection does."]
    decision: Decision | None
    decision_id: DecisionId | None
    decided_by: DecidedBy | None
    feedback: Feedback | None
    response: Response | None
    timed_out: TimedOut
    updated_at_ms: UpdatedAt
    closed_at_ms: ClosedAt | None
    view_digest: Annotated[
        str, "SHA-256 of the text that is shown of it; empty if an earlier version opened it."
    ]
    badges: Annotated[Json, "JSON list of the warnings that are shown."]
    opening: Annotated[Json, "JSON of the people asked and the deadline, as they were when it opened."]
    view_version: Annotated[int, "Version of the text that is shown."]
    must_read: Annotated[Flag, "1 if a decision must state the digest of the text."]
    proposed_arguments: ProposedArguments | None
    delegations: Annotated[
        Json | None,
        "JSON list of everybody who delegated it, with their roles at that time; null if nobody did.",
    ]
    trace: Annotated[
        str | None, "W3C trace context of the decision that opened it; null if it was not traced."
    ]


HOLDS = TableOf(
    "holds",
    HoldRow,
    key=("tenant", "project", "hold_id"),
    indices=(
        Index("holds_by_opening", ("tenant", "project", "opened_at_ms", "hold_id")),
        Index("holds_open", ("tenant", "project", "opened_at_ms", "hold_id"), where="status = 'open'"),
        Index("holds_by_request", ("tenant", "project", "request_id"), where="request_id IS NOT NULL"),
    ),
    time="opened_at_ms",
)
