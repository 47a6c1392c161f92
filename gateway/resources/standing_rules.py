"""Standing rules: decisions that are remembered for other runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from schemas.standing_rule import Evidence, RiskMax, Terms


class StandingRule(Resource):
    """A standing rule as it is now. `uses` is its limit, `used` the uses given out; both are null without a limit."""

    rule_id: str
    status: Literal["proposed", "active", "suspended", "revoked", "refused"]
    reason: str
    project: str
    agent: str
    tool: str
    tool_version: str
    policy_rules: list[str]
    arguments: dict[str, Any]
    expires_at: datetime
    uses: int | None
    used: int | None
    risk_max: RiskMax
    terms: Terms
    evidence: Evidence
    four_eyes: bool
    made_by: str
    made_at: datetime
    changed_by: str
    updated_at: datetime
    contradiction: dict[str, Any] | None
    cursor: str | None = None


class ChangedRule(StandingRule):
    """A standing rule after a change; `pending` are the partitions that have not adopted it yet."""

    adopted: bool
    pending: list[int]
