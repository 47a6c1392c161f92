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
    """One row for each standing rule, in its current state (docs/standing-rules.md)."""

    tenant: Tenant
    rule_id: RuleId
    project: Project
    agent: Agent
    tool: Tool
    status: Annotated[str, "proposed, active, suspended, revoked or refused."]
    reason: Annotated[str, "The reason that the last person to change it gave."]
    document: Document
    policy_rules: Annotated[Json, "JSON list of the policy's rules that it answers for."]
    uses: Annotated[int | None, "Number of permitted uses; null if there is no limit."]
    expires_at_ms: Annotated[Moment, "When it expires."]
    made_by: Annotated[str, "Who made it."]
    made_at_ms: Annotated[Moment, "When it was made."]
    changed_by: Annotated[str, "Who changed it last."]
    contradiction: Annotated[Json | None, "JSON of the decision that last suspended it."]
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
    """One row for each use that was granted of a rule with a limit."""

    tenant: Tenant
    project: Project
    rule_id: RuleId
    number: Annotated[int, "Number of the use, from 1."]
    execution_id: ExecutionId
    call_id: CallId
    revision: Revision
    digest: Digest
    reservation_id: Annotated[str, "Id of the use."]
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
