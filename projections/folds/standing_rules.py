"""Standing rules: one row per rule in its current state, and one for each use of a rule with a limit."""

from typing import Any

from projections.folds.events.definitions import PUBLISHED
from projections.folds.rows import json_value, moment
from projections.tables.standing_rules import RuleUseRow, StandingRuleRow
from schemas.events.rules import RuleUseReserved
from schemas.ids import split_rule_uses_key
from schemas.record import Event

# The execution id under which the events of a rule's uses are listed: no execution id contains a slash.
USES_OF = "rule/"


def rule_id_of(body: Any) -> str:
    """The rule that an event of the definitions is about."""
    return str(body.rule_id)


def standing_rule_row(previous: StandingRuleRow | None, event: Event) -> StandingRuleRow | None:
    """The row of a rule after an event of the definitions.

    Args:
        previous: the row before the event; None before the rule was made.
        event: any event; one that is not about a standing rule changes nothing.
    """
    effect = PUBLISHED.get(type(event.body))
    if effect is not None and effect.makes is not None:
        return effect.makes(event.body, event)
    if effect is None or effect.rule is None or previous is None:
        return previous
    row = previous.copy()
    effect.rule(row, event.body, event)
    return row


def use_row(event: Event) -> RuleUseRow | None:
    """The row of a use that was granted, or None for any other event."""
    body, place = event.body, split_rule_uses_key(event.key)
    if place is None or not isinstance(body, RuleUseReserved):
        return None
    tenant, project, rule_id = place
    return {
        "tenant": tenant,
        "project": project,
        "rule_id": rule_id,
        "number": body.number,
        "execution_id": body.execution_id,
        "call_id": body.call_id,
        "revision": body.revision,
        "digest": body.digest,
        "reservation_id": body.reservation_id,
        "at_ms": event.meta.at_ms,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def standing_rule_json(row: StandingRuleRow, used: int | None = None) -> dict[str, Any]:
    """The standing rule as the APIs return it; `used` is the number of uses so far, None if uses are not counted."""
    document: dict[str, Any] = json_value(row["document"])
    return {
        "rule_id": row["rule_id"],
        "status": row["status"],
        "reason": row["reason"],
        "project": row["project"],
        "agent": row["agent"],
        "tool": row["tool"],
        "tool_version": document["tool_version"],
        "policy_rules": document["policy_rules"],
        "arguments": document["arguments"],
        "expires_at": moment(document["expires_at_ms"]),
        "uses": document["uses"],
        "used": used,
        "risk_max": document["risk_max"],
        "terms": document["terms"],
        "evidence": document["evidence"],
        "four_eyes": document["four_eyes"],
        "made_by": row["made_by"],
        "made_at": moment(row["made_at_ms"]),
        "changed_by": row["changed_by"],
        "updated_at": moment(row["updated_at_ms"]),
        "contradiction": json_value(row["contradiction"]),
    }
