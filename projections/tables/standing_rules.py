"""Standing rules and their uses."""

from typing import Annotated, TypedDict

from projections.tables.columns import Index, Json, Moment, TableOf
from projections.tables.common import (
    Agent,
    AtMs,
    CallId,
    Digest,
    Document,
    ExecutionId,
    LogOffset,
    LogPartition,
    Project,
    Revision,
    RuleId,
    Tenant,
    Tool,
    UpdatedAt,
)


class StandingRuleRow(TypedDict):
    """One row a standing rule, as it stands (docs/standing-rules.md)."""

    tenant: Tenant
    rule_id: RuleId
    project: Project
    agent: Agent
    tool: Tool
    status: Annotated[str, "proposed, active, suspended, revoked or refused."]
    reason: Annotated[str, "Why, in the words of who did it."]
    document: Document
    policy_rules: Annotated[Json, "JSON list of the policy's rules in whose place it stands."]
    uses: Annotated[int | None, "How often it may be used; null: no limit."]
    expires_at_ms: Annotated[Moment, "Until when it holds."]
    made_by: Annotated[str, "Who made it."]
    made_at_ms: Annotated[Moment, "When it was made."]
    changed_by: Annotated[str, "Who changed it last."]
    contradiction: Annotated[Json | None, "JSON of the decision that it was last suspended for."]
    updated_at_ms: UpdatedAt
    log_offset: LogOffset


STANDING_RULES = TableOf(
    "standing_rules",
    StandingRuleRow,
    key=("tenant", "rule_id"),
    indices=(Index("standing_rules_by_project", ("tenant", "project", "made_at_ms", "rule_id")),),
    time="made_at_ms",
)


class RuleUseRow(TypedDict):
    """One row a use that was given of a rule with a limit."""

    tenant: Tenant
    project: Project
    rule_id: RuleId
    number: Annotated[int, "Counts the uses from 1."]
    execution_id: ExecutionId
    call_id: CallId
    revision: Revision
    digest: Digest
    reservation_id: Annotated[str, "Names the use."]
    at_ms: AtMs
    log_partition: LogPartition
    log_offset: LogOffset


RULE_USES = TableOf(
    "rule_uses",
    RuleUseRow,
    key=("tenant", "project", "rule_id", "number"),
    indices=(Index("rule_uses_by_time", ("tenant", "project", "at_ms")),),
    time="at_ms",
)
