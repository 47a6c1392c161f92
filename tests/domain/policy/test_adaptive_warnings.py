"""What publishing and `placet policy check` say of an adaptive block that can never work, or checks nothing."""

from typing import Any

import pytest

from schemas.policy_document import policy_from_value
from services.domain.policy.check import check_value

HOLD = {"id": "asks", "then": "hold"}
BLOCK: dict[str, Any] = {"sample_rate": 0.05}


def found(block: dict[str, Any] | None, *rules: dict[str, Any]) -> list[tuple[str, str]]:
    document: dict[str, Any] = {"policy": "p", "rules": list(rules or (HOLD,))}
    _, problems = check_value(document if block is None else {**document, "adaptive": block})
    return [(problem.path, problem.code) for problem in problems if "adaptive" in problem.path]


def said(block: dict[str, Any], *rules: dict[str, Any]) -> str:
    _, problems = check_value({"policy": "p", "rules": list(rules or (HOLD,)), "adaptive": block})
    return "\n".join(problem.message for problem in problems if "adaptive" in problem.path)


@pytest.mark.parametrize(
    "block",
    [
        BLOCK,
        {"allow_when": "trust.lower_bound >= risk.required"},
        {"allow_when": "trust.lower_bound >= risk.required && trust.rejections == 0.0"},
        {"allow_when": "trust.lower_bound > 0.99 && risk.level == 'low'"},
        {"allow_when": "args.amount < 5.0"},
        {"allow_when": "trust.trust_class == 'text=text&risk=writes'"},
        {"allow_when": "!('destructive' in risk.parts)"},
        {"allow_when": "trust.lower_bound >= risk.required && !('money' in risk.parts)"},
        {"floor": {"low": 0.5, "medium": 0.8, "high": "ask"}},
        {"floor": {"low": "ask", "medium": "ask", "high": "ask"}},
        {"sample_rate": 1},
    ],
)
def test_block_that_can_release_calls_is_not_warned_of(block: dict[str, Any]) -> None:
    assert found(block) == []


def test_policy_without_a_block_and_without_a_word_about_it_is_not_warned_of() -> None:
    assert found(None, {**HOLD, "hold": {"quorum": 2}}) == []


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ('trust.lower_bound >= "0.5"', "always_fails"),
        ("risk.level >= 0.5", "always_fails"),
        ("trust.lower_bound", "always_fails"),
        ("risk.score * 2 < 1.0", "always_fails"),
        ("trust.lower_bound > 0.5 && risk.level > 1.0", "may_fail"),
        ("risk.level == 'low' || trust.approvals > 'many'", "may_fail"),
        ("trust.lower_bound == 'high'", "never_releases"),
        ("trust.lower_bound > 1.5", "never_releases"),
        ("false", "never_releases"),
    ],
)
def test_condition_that_cannot_be_true_or_fails_is_warned_of(condition: str, code: str) -> None:
    assert ("adaptive.allow_when", code) in found({"allow_when": condition})


@pytest.mark.parametrize("condition", ['trust.lower_bound >= "0.5"', '"0.5" <= risk.score && args.x == 1.0'])
def test_number_of_trust_or_risk_in_quotes_is_told_like_an_arguments(condition: str) -> None:
    assert "write the number without quotes" in said({"allow_when": condition})


def test_condition_that_does_not_compile_is_an_error_and_no_warning() -> None:
    assert found({"allow_when": "trust.lower_bound >="}) == [("adaptive.allow_when", "does_not_compile")]


@pytest.mark.parametrize(
    "rules",
    [
        [{"id": "a", "then": "deny"}],
        [{"id": "a", "then": "allow"}],
        [{**HOLD, "hold": {"quorum": 2}}],
        [{**HOLD, "hold": {"adaptive": False}}, {"id": "b", "then": "hold", "hold": {"roles": ["cfo"]}}],
    ],
)
def test_block_whose_rules_all_leave_nothing_to_trust_is_warned_of(rules: list[dict[str, Any]]) -> None:
    assert ("adaptive", "never_releases") in found(BLOCK, *rules)
    assert ("adaptive", "never_releases") not in found(BLOCK, *rules, {"id": "one", "then": "hold"})


@pytest.mark.parametrize(
    "hold", [{"quorum": 2}, {"roles": ["cfo"]}, {"escalate": {"after_seconds": 30, "roles": ["cfo"]}}]
)
def test_hold_that_says_adaptive_although_it_asks_certain_people_is_warned_of(hold: dict[str, Any]) -> None:
    rule = {"id": "b", "then": "hold", "hold": {**hold, "adaptive": True}}

    assert found(BLOCK, HOLD, rule) == [("rules[1].hold.adaptive", "no_effect")]
    assert found(BLOCK, HOLD, {**rule, "hold": hold}) == []


def test_hold_that_says_adaptive_without_a_block_is_warned_of() -> None:
    assert found(None, {**HOLD, "hold": {"adaptive": True}}) == [("rules[0].hold.adaptive", "no_effect")]
    assert found(BLOCK, {**HOLD, "hold": {"adaptive": True}}) == []


@pytest.mark.parametrize(
    ("floor", "problems"),
    [
        ({"low": 1}, [("adaptive.floor.low", "never_releases"), ("adaptive.floor.medium", "lower_floor")]),
        ({"low": 0.9, "medium": 0.9, "high": 0.1}, [("adaptive.floor.high", "lower_floor")]),
        ({"low": "ask", "medium": 0.5}, [("adaptive.floor.medium", "lower_floor")]),
        ({"medium": 1}, [("adaptive.floor.medium", "never_releases")]),
    ],
)
def test_floor_that_nothing_reaches_or_that_is_lower_at_more_risk_is_warned_of(
    floor: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    assert found({"floor": floor}) == problems


def test_block_without_a_sample_is_told_that_nothing_checks_it() -> None:
    assert found({"sample_rate": 0}) == [("adaptive.sample_rate", "no_sample")]
    assert "nothing checks what trust releases" in said({"sample_rate": 0})


def test_warnings_do_not_change_what_a_document_is() -> None:
    value = {"policy": "p", "rules": [HOLD], "adaptive": {"sample_rate": 0}}
    assert check_value(value)[0] == policy_from_value(value)
