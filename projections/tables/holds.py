"""The holds, some of which are requests."""

from typing import Annotated, TypedDict

from projections.tables.columns import Flag, Index, Json, Moment, TableOf
from projections.tables.common import (
    Agent,
    Arguments,
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
    """One row a pause for a person; a request is a hold with a request_id."""

    tenant: Tenant
    project: Project
    hold_id: HoldId
    execution_id: ExecutionId
    request: Annotated[str | None, "What the run was started for."]
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
    reason: Annotated[str | None, "Why the agent wants it."]
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
    question: Question
    options: Options
    input_schema: Annotated[Json, "JSON Schema of the arguments, for an edit."]
    fields: Fields
    decision_type: DecisionType
    requester: Annotated[str, "Who asked."]
    roles: Annotated[Json, "JSON list of the roles that may decide."]
    reviewers: Annotated[Json, "JSON list of who may decide by name."]
    excluded: Annotated[Json, "JSON list of who may not."]
    quorum: Annotated[int, "How many people must approve."]
    exclude_requester: Annotated[Flag, "1 where the requester may not decide."]
    requirements: Annotated[Json | None, "JSON of what each of several rules asks for."]
    votes: Annotated[Json, "JSON list of every word that counts; the table votes has a row for each."]
    claimed_by: Annotated[str | None, "Who is on it."]
    claimed_until_ms: Annotated[Moment | None, "Until when the claim is good."]
    assignee: Annotated[str | None, "To whom it was handed on."]
    escalated: Annotated[Flag, "1 once it was escalated."]
    opened_at_ms: OpenedAt
    deadline_at_ms: DeadlineAt | None
    on_timeout: Annotated[str, "What happens at the deadline."]
    default_value: Annotated[
        Json | None, "JSON of the answer when time runs out; of a call, of what its agent is told."
    ]
    escalate_at_ms: Annotated[Moment | None, "When it will escalate."]
    escalate_roles: Annotated[Json, "JSON list of the roles that are asked then."]
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
        str, "SHA-256 of the text that is shown of it; empty: opened by an earlier version."
    ]
    badges: Annotated[Json, "JSON list of the warnings that are shown."]
    opening: Annotated[Json, "JSON of whom it asked, and until when, as it opened."]
    view_version: Annotated[int, "Version of that text."]
    must_read: Annotated[Flag, "1 where a decision must name the text."]
    proposed_arguments: ProposedArguments | None
    delegations: Annotated[
        Json | None, "JSON list of all who handed it on, with their roles then; null: nobody."
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
