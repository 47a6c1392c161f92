from __future__ import annotations

import pytest

from ops.evaluation.arms import ARMS, BY_NAME, Arm
from tests.policy_documents import check, parse_policy


def _rules(name: str) -> list[tuple[str, object, str]]:
    document = parse_policy(BY_NAME[name].policy.read_text(encoding="utf-8"))
    return [(rule.id, rule.match, rule.then) for rule in document.rules]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_policy_has_no_problems(arm: Arm) -> None:
    assert check(parse_policy(arm.policy.read_text(encoding="utf-8")), tenant="default") == []


@pytest.mark.parametrize("name", ["remember", "adaptive"])
def test_rules_are_those_of_the_static_policy(name: str) -> None:
    """Whatever such an arm releases and the static policy holds, trust or a standing rule has released."""
    assert _rules(name) == _rules("static")


def test_only_the_adaptive_arm_weighs_trust() -> None:
    weighing = [
        arm.name for arm in ARMS if parse_policy(arm.policy.read_text(encoding="utf-8")).adaptive is not None
    ]
    assert weighing == ["adaptive"]
