"""The tool calls."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, TableOf
from projections.tables.common import (
    Adaptive,
    Agent,
    Arguments,
    CallId,
    Context,
    DeadlineAt,
    DecidedBy,
    Decision,
    DecisionId,
    Digest,
    Effect,
    EndedAt,
    Error,
    ExecutionId,
    Feedback,
    History,
    PolicyVersion,
    Project,
    ProposedArguments,
    Revision,
    RiskLevel,
    RiskParts,
    RiskRequired,
    RiskScore,
    Rules,
    SendersBefore,
    Tenant,
    Tool,
    ToolVersion,
    Trust,
    UpdatedAt,
    VerdictDetail,
    VerdictReason,
)


class CallRow(TypedDict):
    """One row for each tool call, at its newest revision."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    call_id: CallId
    revision: Revision
    agent: Agent
    tool: Tool
    tool_version: ToolVersion
    arguments: Arguments
    digest: Digest
    context: Context
    claims: Annotated[Json, "JSON of the hints that the agent gave about its tool."]
    reason: Annotated[str, "The agent's reason for the call."]
    proposed_by: Annotated[str, "Who proposed this revision."]
    probe: Annotated[
        Json | None, "JSON of what an operator planted (docs/probes.md); null for a call of the agent's own."
    ]
    probe_result: Annotated[
        str | None, "caught, missed, expired or cancelled; null while people are asked about a planted call."
    ]
    probe_answers: Annotated[
        Json | None,
        "JSON list of what each person answered to a planted call; its `person` is an empty text if no principal of "
        "the account `by` is published (null in the table `probe_answers`).",
    ]
    senders: SendersBefore | None
    message: Annotated[
        str | None, "The message that the agent was answering when it proposed the call; null if none."
    ]
    status: Annotated[
        str,
        "proposed, held, released, denied, cancelled, expired, revoked, consumed, "
        "succeeded, failed or outcome_unknown.",
    ]
    proposed_arguments: ProposedArguments | None
    approved_arguments: Annotated[Json | None, "Canonical JSON of the arguments that were released."]
    edits: Annotated[
        Json | None, "JSON list of the last 20 edits; the table edits has a row for each difference."
    ]
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
    trust_class: Annotated[str | None, "What decisions on it count for (docs/trust.md)."]
    hold_id: Annotated[str | None, "Id of the call's last hold."]
    deadline_at_ms: DeadlineAt | None
    decision: Decision | None
    decision_id: DecisionId | None
    decided_by: DecidedBy | None
    decided_at_ms: Annotated[Moment | None, "When its last hold was decided."]
    feedback: Feedback | None
    released_by: Annotated[str | None, "policy, decision or rule."]
    rule_id: Annotated[str | None, "Id of the standing rule that released it instead of a person."]
    grant_id: Annotated[str | None, "Id of the grant to run it once."]
    grant_decision_id: Annotated[str | None, "Idempotency key for the tool."]
    grant_digest: Annotated[str | None, "The digest that the grant is for."]
    grant_expires_at_ms: Annotated[Moment | None, "When the grant expires."]
    denied_because: Annotated[
        str | None, "policy, rejected, timeout, halted or probe; null if it was not denied."
    ]
    rollback: Annotated[
        Json | None,
        "JSON list of the calls that the agent should undo after this call was rejected, newest first.",
    ]
    attempt_id: Annotated[str | None, "Id of the attempt that runs or ran it."]
    run_deadline_at_ms: Annotated[Moment | None, "Deadline for the end of the attempt."]
    lease_ms: Annotated[int | None, "How long a heartbeat extends the lease, in milliseconds."]
    lease_until_ms: Annotated[Moment | None, "When the attempt's lease ends."]
    output: Annotated[Json | None, "JSON that the tool returned."]
    error: Error | None
    duration_ms: Annotated[int | None, "How long the tool ran, in milliseconds."]
    impact_reports: Annotated[int, "How many people have reported that it did harm."]
    proposed_at_ms: Annotated[Moment, "When it was first proposed."]
    updated_at_ms: UpdatedAt
    ended_at_ms: EndedAt | None


TOOL_CALLS = TableOf(
    "tool_calls",
    CallRow,
    key=("tenant", "project", "execution_id", "call_id"),
    indices=(
        Index("calls_open", ("tenant", "project", "proposed_at_ms"), where="ended_at_ms IS NULL"),
        Index("calls_by_time", ("tenant", "project", "proposed_at_ms")),
        Index("calls_planted", ("tenant", "project", "proposed_at_ms", "call_id"), where="probe IS NOT NULL"),
    ),
    time="proposed_at_ms",
)
