"""The policy that shows adaptive approval: it can be published, and its own tests pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.domain.policy.cases import parse_cases, run_policy_tests
from services.domain.policy.check import check_text
from tests.policy_documents import parse_policy

POLICIES = Path(__file__).parents[3] / "policies"
TEXT = (POLICIES / "adaptive.yaml").read_text("utf-8")
RESULTS = run_policy_tests(
    parse_policy(TEXT), parse_cases((POLICIES / "adaptive.tests.yaml").read_text("utf-8"))
)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.name)
def test_case_passes(result: object) -> None:
    assert getattr(result, "differences", None) == ()


def test_policy_has_no_error() -> None:
    _, problems = check_text(TEXT)
    assert [problem for problem in problems if problem.severity == "error"] == []


def test_condition_of_the_block_is_checked_like_a_rules() -> None:
    _, problems = check_text(TEXT.replace("trust.rejections == 0.0", "trust.rejectons == 0.0"))

    (found,) = [problem for problem in problems if problem.severity == "error"]
    assert (found.path, found.message) == (
        "adaptive.allow_when",
        "trust has no field 'rejectons'; did you mean 'rejections'?",
    )
