"""The verdict's columns, which calls and holds share."""

from typing import TypedDict


class NoVerdict(TypedDict):
    """The columns before there is a verdict."""

    effect: None
    rules: None
    policy_version: None
    verdict_reason: None
    verdict_detail: None
    risk_score: None
    risk_level: None
    risk_parts: None
    risk_required: None
    trust: None
    adaptive: None
    history: None


NO_VERDICT: NoVerdict = {
    "effect": None,
    "rules": None,
    "policy_version": None,
    "verdict_reason": None,
    "verdict_detail": None,
    "risk_score": None,
    "risk_level": None,
    "risk_parts": None,
    "risk_required": None,
    "trust": None,
    "adaptive": None,
    "history": None,
}
