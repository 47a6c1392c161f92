"""Releases by trust: what their verdicts say of themselves must hold, and be readable."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from schemas.call_history import NO_HISTORY, CallHistory
from tests.ops.checker.releases import (
    ENOUGH_FOR_NEW,
    NEW,
    OF_NEW,
    OF_TAINTED,
    POLICY,
    RULES,
    TAINTED,
    earned,
    trusted,
)

NOT_READ = "I1 released by trust by an outcome, trust or history that cannot be read"


@pytest.mark.parametrize(
    "trust",
    [
        {"through": [1]},
        {"through": {"0": "x"}},
        {"through": {"x": 0}},
        {"through": {"0": 1.5}},
        {"raising": "13"},
        {"lower_bound": None},
        {"lowering": float("nan")},
        {"contrary_at": 7},
    ],
    ids=str,
)
def test_trust_of_another_form_is_a_violation_and_ends_nothing(trust: dict[str, Any]) -> None:
    assert trusted(earned(), trust=trust, lower_bound=0.9) == [NOT_READ]


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "no JSON", '{"trust_class": "x"}', "[" * 100_000])
@pytest.mark.parametrize("name", ["trust", "adaptive"])
def test_verdict_that_cannot_be_read_is_a_violation_and_ends_nothing(name: str, text: str | None) -> None:
    assert trusted(earned(), verdict={name: text}) == [NOT_READ]


@pytest.mark.parametrize("text", ["", "[]", '{"parts": "novel"}', '{"is_whole": 0}'])
def test_history_that_cannot_be_read_is_a_violation(text: str) -> None:
    assert trusted(earned(), verdict={"history": text}) == [NOT_READ]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"floor": 0.99}, "that is not enough"),
        ({"floor": None}, "that is not enough"),
        ({"required": 0.99}, "that is not enough"),
        ({"seed": ""}, "against its draw"),
        ({"draw": 0.0}, "against its draw"),
        ({"draw": None}, "against its draw"),
        ({"sample_rate": 1.0}, "against its draw"),
        ({"result": "sampled"}, "without an outcome that says so"),
        ({"lower_bound": 0.9999}, "by another bound than that of its trust"),
        ({"trust": {"contrary_at": "0@7"}}, "against what people had said"),
        ({"trust": {"trust_class": NEW}}, "in another class of calls"),
        ({"verdict": {"trust_class": ""}}, "in another class of calls"),
        ({"verdict": {"risk_required": 0.6}}, "that must outweigh less than its risk"),
        # 1 − 0.75 × 0.65 gives 0.5125, of which 0.9024 is required.
        ({"verdict": {"risk_parts": ("money", "writes")}}, "that must outweigh less than its risk"),
        ({"verdict": {"risk_parts": ("unknown_tool",)}}, "that must outweigh less than its risk"),
        ({"verdict": {"risk_parts": ("unreadable",)}}, "that must outweigh less than its risk"),
        ({"history": replace(OF_NEW, opposed=("to",))}, "with a value that people were against"),
        (
            {"history": replace(OF_NEW, apart=("to",))},
            "with values that people have approved, but not together",
        ),
        ({"history": CallHistory(is_whole=False)}, "with values that were not looked at"),
        ({"history": CallHistory(is_known=False)}, "while nobody knew what is new in it"),
        ({"history": OF_NEW}, "in a class for other values than it has"),
        ({"history": CallHistory(novel=("to",))}, "in a class for other values than it has"),
        ({"floor": 0.4}, "by another floor than the policy's"),
        ({"sample_rate": 0.01}, "by another sample rate than the policy's"),
        (
            {"verdict": {"policy_version": "p@2"}},
            "by a policy that is not in force, or has no adaptive block",
        ),
        (
            {"verdict": {"policy_version": "q@1"}},
            "by a policy that is not in force, or has no adaptive block",
        ),
        ({"verdict": {"policy_version": ""}}, "by a policy that is not in force, or has no adaptive block"),
    ],
)
def test_verdict_that_contradicts_itself_is_a_violation(more: dict[str, Any], what: str) -> None:
    assert f"I1 released by trust {what}" in trusted(earned(), **more)


@pytest.mark.parametrize("number", ["required", "floor", "sample_rate", "draw", "lower_bound"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "1", True, [1]], ids=str)
def test_number_that_is_none_passes_nothing(number: str, value: Any) -> None:
    assert trusted(earned(), **{number: value}) == [NOT_READ]


@pytest.mark.parametrize(
    ("trust_class", "history", "is_right"),
    [
        (NEW, OF_NEW, True),
        ("to=text&risk=novel,writes", OF_NEW, True),
        (TAINTED, OF_TAINTED, True),
        (NEW, OF_TAINTED, False),
        (TAINTED, OF_NEW, False),
        (TAINTED, NO_HISTORY, False),
        ("to=text&risk=novel:file,writes", OF_NEW, False),
        ("to=text&risk=novel:to,tainted,writes", OF_TAINTED, False),
        ("to=text&risk=novel:to,tainted:memo+to,writes", OF_TAINTED, False),
        ("file=text&risk=novel:a+to,writes", replace(OF_NEW, novel=("to", "a")), True),
    ],
)
def test_class_names_the_values_that_the_verdict_says_are_new_or_tainted(
    trust_class: str, history: CallHistory, is_right: bool
) -> None:
    found = trusted(earned(), trust_class=trust_class, history=history)
    assert ("I1 released by trust in a class for other values than it has" not in found) == is_right


def test_new_values_require_more_and_tainted_ones_are_of_high_risk() -> None:
    less = "I1 released by trust that must outweigh less than its risk"
    new, tainted = (ENOUGH_FOR_NEW, NEW), (60, TAINTED)

    assert less in trusted(earned(*new), *(new[0], 0, new[1]), history=OF_NEW, required=0.8332)
    high: dict[str, Any] = {"required": 0.9338, "floor": 0.6}
    assert trusted(earned(*tainted), *(60, 0, TAINTED), history=OF_TAINTED, **high) == []
    low: dict[str, Any] = {**high, "floor": 0.5}
    assert trusted(earned(*tainted), *(60, 0, TAINTED), history=OF_TAINTED, **low) == [
        "I1 released by trust by another floor than the policy's"
    ]


def test_policy_that_is_in_force_no_more_or_never_had_the_block_lets_trust_release_nothing() -> None:
    not_in_force = ["I1 released by trust by a policy that is not in force, or has no adaptive block"]
    newer, replaced, retired, plain = earned(), earned(), earned(), earned()
    for story in (newer, replaced):
        story.publishes_policy("p", 2, **POLICY)
    retired.retires_policy("p")
    plain.publishes_policy("p", 2, rules=RULES)

    assert trusted(newer, verdict={"policy_version": "p@2"}) == []
    assert trusted(replaced) == not_in_force
    assert trusted(retired) == not_in_force
    assert trusted(plain, verdict={"policy_version": "p@2"}) == not_in_force


def test_policy_of_a_project_is_told_apart_from_that_of_its_tenant() -> None:
    story, twin = earned(), earned()
    for one in (story, twin):
        block = {"sample_rate": 0, "floor": {"low": 0.6}}
        one.publishes_policy("p", 7, project="main", adaptive=block, rules=RULES)

    assert trusted(story, verdict={"policy_version": "main/p@7"}, floor=0.6) == []
    assert trusted(twin, verdict={"policy_version": "main/p@1"}) == [
        "I1 released by trust by a policy that is not in force, or has no adaptive block"
    ]


@pytest.mark.parametrize("block", ["x", [], {"floor": {"low": "never"}}, {"sample_rate": "0"}])
def test_policy_whose_block_cannot_be_read_releases_nothing_and_ends_nothing(block: Any) -> None:
    story = earned()
    story.publishes_policy("p", 2, adaptive=block)

    assert trusted(story, verdict={"policy_version": "p@2"}) == [
        "I1 released by trust by a policy that is not in force, or has no adaptive block"
    ]
