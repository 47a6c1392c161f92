"""The readable part of a policy whose form is wrong: an error of form hides no error elsewhere in the document."""

from typing import Any

from pydantic import ValidationError

from schemas.policy_document import (
    MAX_EXPRESSION_CHARS,
    MAX_RULES,
    Adaptive,
    Defaults,
    Hold,
    Match,
    MatchAnnotations,
    PolicyDocument,
    Rule,
    Scope,
    readable,
)
from schemas.policy_size import PATTERNS_MAX

# Replaces a name that cannot be read: it passes every check, and nothing more is reported for its place.
UNNAMED = "unnamed"
_ANY_TOOL = "*"


def readable_part(value: Any) -> PolicyDocument:
    """A document of all parts whose form is valid, each in its own place; all its rules hold.

    Args:
        value: parsed JSON or YAML that is not a valid policy.
    """
    given = _mapping(value)
    rules = given.get("rules")
    return PolicyDocument(
        policy=_name(given.get("policy")),
        scope=readable(Scope, given.get("scope")),
        defaults=readable(Defaults, given.get("defaults")),
        rules=tuple(_rule(number, rule) for number, rule in enumerate(_list(rules)[:MAX_RULES])),
        adaptive=readable(Adaptive, given.get("adaptive")) if given.get("adaptive") else None,
    )


def _name(value: Any) -> str:
    try:
        return PolicyDocument(policy=value).policy
    except ValidationError:
        return UNNAMED


def _rule(number: int, value: Any) -> Rule:
    rule = _mapping(value)
    match = _mapping(rule.get("match"))
    return Rule(
        id=f"rule-{number}",
        match=Match.model_construct(
            tools=_patterns(match.get("tools")),
            tools_like=_patterns(match.get("tools_like")),
            annotations=readable(MatchAnnotations, match.get("annotations")),
        ),
        when=_condition(rule.get("when")),
        then="hold",
        hold=readable(Hold, rule.get("hold")),
    )


def _condition(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= MAX_EXPRESSION_CHARS else None


def _patterns(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(_pattern(one) for one in value[:PATTERNS_MAX])


def _pattern(value: Any) -> str:
    return value if isinstance(value, str) and 0 < len(value) <= MAX_EXPRESSION_CHARS else _ANY_TOOL


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
