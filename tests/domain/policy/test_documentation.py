"""What docs/policy.md shows must work, and its figures must be those of the code."""

import re
from pathlib import Path

from schemas.risk_score import HIGH_FROM, MEDIUM_FROM, TOLERATED, WEIGHTS
from services.domain.policy.cases import parse_cases, run_policy_tests
from services.domain.policy.cel import MAX_COST
from tests.policy_documents import check, parse_policy

TEXT = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
POLICY, CASES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def test_documentation_example_policy_has_no_problems() -> None:
    assert check(parse_policy(POLICY), tenant="test") == []


def test_documentation_example_case_passes() -> None:
    (result,) = run_policy_tests(parse_policy(POLICY), parse_cases(CASES))

    assert result.passed, result.differences


def test_documentation_weights_are_those_of_the_code() -> None:
    documented = {name: float(weight) for name, weight in re.findall(r"\| `(\w+)` \| (0\.\d+) \|", TEXT)}

    assert documented == WEIGHTS
    assert f"low < {MEDIUM_FROM:.2f} ≤ medium < {HIGH_FROM:.2f} ≤ high" in TEXT
    assert f"1 − {TOLERATED} / score" in TEXT
    assert f"{MAX_COST:,} units" in TEXT
