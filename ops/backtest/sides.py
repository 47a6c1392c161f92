"""Verdicts as sides of a comparison, recorded and judged again, and where the two differ."""

from __future__ import annotations

from typing import Any

from ops.backtest.found import Side
from ops.backtest.judging import Inputs
from schemas.adaptive import AdaptiveOutcome, outcome_from_text
from schemas.events.calls import PolicyVerdictIssued
from services.domain.execution.verdicts import Judgement
from services.domain.policy import PolicySet

VALUE_MAX = 200


def recorded_side(body: PolicyVerdictIssued) -> Side:
    """A verdict as it was recorded."""
    adaptive = "" if body.adaptive is None else outcome_from_text(body.adaptive).result
    return Side(body.effect, body.reason, body.rules, body.detail, body.policy_version, adaptive)


def side_of(found: Judgement) -> Side:
    """A judgement; a use of a standing rule that would be asked for counts as given."""
    verdict = found.verdict
    if found.reserves and found.document is not None:
        detail = "a standing rule with a limit of uses covers it; whether a use is left is not replayed"
        return Side(
            "allow", "remembered", (f"rule:{found.document.rule_id}",), detail, verdict.policy_version
        )
    adaptive = "" if found.outcome is None else found.outcome.result
    return Side(
        verdict.effect, verdict.reason, verdict.rules, verdict.detail, verdict.policy_version, adaptive
    )


def causes_of(side: Side, policies: PolicySet, tenant: str) -> tuple[str, ...]:
    """What says the effect of a verdict: its rules, or its reason in brackets.

    A verdict on a tool that is not published cites the rule that matched, though the effect is that of
    `defaults.unknown_tool` where that is stricter.
    """
    rules = side.rules
    if side.reason == "unknown_tool":
        compiled = (
            one for one in policies.policies.values() if (one.tenant, one.label) == (tenant, side.policy)
        )
        says = {f"{one.label}/{rule.rule.id}": rule.rule.then for one in compiled for rule in one.rules}
        rules = tuple(rule for rule in rules if says.get(rule) == side.effect)
    return rules or (f"({side.reason})",)


def differing_of(
    body: PolicyVerdictIssued, again: Judgement, inputs: Inputs, through: int
) -> dict[str, tuple[str, str]]:
    """The fields in which a judgement by the definitions in force then differs from what was recorded.

    Args:
        body: what was recorded.
        again: the judgement.
        inputs: what was recorded of its inputs.
        through: the offset of the definitions that were in force by the log.
    """
    verdict, risk = again.verdict, again.verdict.risk
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("effect", body.effect, "reserving" if again.reserves else verdict.effect),
        ("rules", body.rules, verdict.rules),
        ("policy_version", body.policy_version, verdict.policy_version),
        ("reason", body.reason, verdict.reason),
        ("detail", body.detail, verdict.detail),
        ("risk_score", body.risk_score, risk.score),
        ("risk_level", body.risk_level, risk.level),
        ("risk_parts", body.risk_parts, risk.parts),
        ("risk_required", body.risk_required, risk.required),
        ("trust", inputs.trust, verdict.trust),
        ("history", inputs.history, verdict.history),
        ("definitions_through", body.definitions_through, through),
        ("adaptive", _outcome(body), again.outcome),
    )
    return {name: (str(was)[:VALUE_MAX], str(now)[:VALUE_MAX]) for name, was, now in pairs if was != now}


def _outcome(body: PolicyVerdictIssued) -> AdaptiveOutcome | None:
    return None if body.adaptive is None else outcome_from_text(body.adaptive)
