"""The star for analysts (docs/analysis.md): edits and rules as rows, and SQL views of decisions, reviewers and rules.

The other tables of the star are those of the product itself, such as `tool_calls`, `holds` and `votes`.
"""

from typing import Annotated, TypedDict

from projections.tables.columns import Json, Moment, Offer, TableOf
from projections.tables.common import (
    Agent,
    Arguments,
    AtMs,
    CallId,
    ClosedAt,
    DecisionId,
    DwellMs,
    Effect,
    EventId,
    ExecutionId,
    Feedback,
    HoldId,
    Kind,
    LogOffset,
    LogPartition,
    OpenedAt,
    Project,
    RequestId,
    Revision,
    RiskLevel,
    RiskScore,
    Rules,
    Subject,
    Tenant,
    Tool,
    VerdictReason,
)

# An approval after less than this on the screen was hardly read.
QUICK_MS = 3_000


class EditPatchRow(TypedDict):
    """One row for each edit: what the agent proposed, what a person made of it, and the JSON Patch between them."""

    tenant: Tenant
    project: Project
    execution_id: ExecutionId
    call_id: CallId
    revision: Annotated[int, "The revision that the edit made."]
    at_ms: AtMs
    agent: Agent
    tool: Tool
    hold_id: HoldId
    decision_id: Annotated[str, "Id of the edit, as in votes."]
    subject: Annotated[str, "Who edited."]
    proposed_arguments: Annotated[
        Json, "The agent's own arguments, also where a person had edited them before."
    ]
    arguments: Arguments
    patch: Annotated[Json, "JSON Patch (RFC 6902) that turns proposed_arguments into arguments."]
    operations: Annotated[int, "Number of operations in the patch."]
    feedback: Feedback
    event_id: EventId
    log_partition: LogPartition
    log_offset: LogOffset


EDIT_PATCHES = TableOf(
    "edit_patches",
    EditPatchRow,
    key=("tenant", "project", "at_ms", "event_id"),
    time="at_ms",
)


class RuleVerdictRow(TypedDict):
    """One row for each rule that a verdict on a call cites; a verdict that cites none has no row."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    number: Annotated[int, "Number of the rule in the verdict, from 1."]
    rule: Annotated[str, "The rule as verdicts cite it: policy@version/rule, rule:id, or execution:decision."]
    kind: Annotated[
        str, "policy, standing (a standing rule) or execution (a decision remembered in the run)."
    ]
    policy: Annotated[str | None, "The policy without its version; null for a remembered decision."]
    policy_version: Annotated[int | None, "The policy's version; null for a remembered decision."]
    rule_id: Annotated[str, "The rule's id in its policy, or the id of the remembered decision."]
    effect: Effect
    reason: VerdictReason
    risk_level: RiskLevel
    agent: Agent
    tool: Tool
    execution_id: ExecutionId
    call_id: CallId
    revision: Revision
    log_partition: LogPartition
    log_offset: LogOffset


RULE_VERDICTS = TableOf(
    "rule_verdicts",
    RuleVerdictRow,
    key=("tenant", "project", "at_ms", "event_id", "number"),
    time="at_ms",
)


class DecisionRow(TypedDict):
    """One row for each hold that a person's vote ended; made from votes and holds."""

    tenant: Tenant
    project: Project
    at_ms: AtMs
    event_id: EventId
    decision_id: DecisionId
    hold_id: HoldId
    execution_id: ExecutionId
    call_id: CallId | None
    request_id: RequestId | None
    agent: Agent | None
    tool: Tool | None
    revision: Annotated[int | None, "The revision of the call that was decided on."]
    kind: Kind
    cause: Annotated[str, "Why it was held: policy, request, outcome_unknown or definition_changed."]
    rules: Rules | None
    risk_level: RiskLevel | None
    risk_score: RiskScore | None
    quorum: Annotated[int, "Number of people who must approve."]
    subject: Subject
    person: Annotated[
        str | None, "The principal that the subject is an account of; null if none is published."
    ]
    decision: Annotated[str, "approve, edit, reject or respond."]
    feedback: Feedback
    opened_at_ms: OpenedAt
    closed_at_ms: ClosedAt | None
    wait_ms: Annotated[int, "From the opening of the hold to the decision, in milliseconds."]
    dwell_ms: DwellMs | None


DECISIONS = Offer("decisions", DecisionRow)


class ReviewerRow(TypedDict):
    """One row for each account that has voted on a hold, with what it did so far; made from votes and holds."""

    tenant: Tenant
    project: Project
    subject: Annotated[str, "The account."]
    person: Annotated[
        str | None, "The principal that it is an account of, as votes say; null if none was published."
    ]
    approved: Annotated[int, "Votes to approve that count."]
    edited: Annotated[int, "Votes to edit that count."]
    rejected: Annotated[int, "Votes to reject that count."]
    answered: Annotated[int, "Answers that count."]
    decided: Annotated[int, "Of these votes and answers, those that ended their hold."]
    lost: Annotated[int, "Votes that came after the end of the hold."]
    refused: Annotated[int, "Votes that were not permitted."]
    first_voted_at_ms: Annotated[Moment, "When the first of these votes came."]
    last_voted_at_ms: Annotated[Moment, "When the last of these votes came."]
    wait_ms: Annotated[
        float | None,
        "Mean of the times from the opening of a hold to a vote that counts; null if there was none.",
    ]
    dwell_ms: Annotated[float | None, "Mean of the measured viewing times; null if none was measured."]
    measured: Annotated[int, "Votes to approve that count and whose viewing time was measured."]
    quick: Annotated[int, f"Of the measured ones, those of less than {QUICK_MS} ms."]
    probes: Annotated[int, "Planted calls that it has answered to and whose hold has ended."]
    probes_missed: Annotated[int, "Of these, those that would have run as they were planted."]


REVIEWERS = Offer("reviewers", ReviewerRow)


class RuleRow(TypedDict):
    """One row for each rule that a verdict has cited, with the number of its verdicts; made from rule_verdicts."""

    tenant: Tenant
    project: Project
    rule: Annotated[str, "The rule as verdicts cite it, with its policy's version."]
    kind: Annotated[str, "policy, standing or execution."]
    policy: Annotated[str | None, "The policy without its version; null for a remembered decision."]
    policy_version: Annotated[int | None, "The policy's version; null for a remembered decision."]
    rule_id: Annotated[str, "The rule's id in its policy, or the id of the remembered decision."]
    verdicts: Annotated[int, "Verdicts that cite it."]
    allowed: Annotated[int, "Of these, those that allowed the call."]
    held: Annotated[int, "Of these, those that held it."]
    denied: Annotated[int, "Of these, those that denied it."]
    first_at_ms: Annotated[Moment, "When it was cited first."]
    last_at_ms: Annotated[Moment, "When it was cited last."]


RULES = Offer("rules", RuleRow)
