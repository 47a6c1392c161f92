"""What a policy's patterns may be together, whatever each of them is."""

from typing import Any

import pytest

from schemas.linear_patterns import bounded_size
from schemas.policy_document import policy_from_value
from services.domain.policy.programs import MATCHES_MAX, PATTERN_MAX, TOOLS_MAX, program_problems
from tests.policy_documents import check


def policy(*rules: dict[str, Any]) -> Any:
    numbered = [{"id": f"r{number}", "then": "hold", **rule} for number, rule in enumerate(rules)]
    return policy_from_value({"policy": "p", "rules": numbered})


def test_ordinary_patterns_of_the_largest_policy_are_taken() -> None:
    conditions = [f"args.url.matches('^https://[a-z.]+/{n}$')" for n in range(250)]
    tools = [[f"mcp__server{n}__*", f"send_{n}_*_now", f"read-{n}"] for n in range(250)]

    document = policy(*({"when": text} for text in conditions), *({"match": {"tools": one}} for one in tools))

    assert program_problems(document) == ()


def test_case_31_patterns_of_conditions_that_are_too_large_together_are_refused_with_the_largest() -> None:
    each = bounded_size("9.{500}")
    rules = [{"when": f"args.a.matches('{n}.{{500}}')"} for n in range(MATCHES_MAX // each + 1)]

    (problem,) = program_problems(policy({"when": "args.a.matches('.{600}')"}, *rules))

    assert (problem.path, problem.code) == ("rules[0].when", "too_large")
    assert "shorten this one first" in problem.message
    assert problem in check(policy({"when": "args.a.matches('.{600}')"}, *rules))


def test_case_31_tool_patterns_that_are_too_large_together_are_refused() -> None:
    tools = [f"{n:04d}{'?' * 245}" for n in range(800)]
    rules = [{"match": {"tools": tools[first : first + 200]}} for first in range(0, 800, 200)]

    (problem,) = program_problems(policy(*rules))

    assert problem.path.startswith("rules[0].match.tools[")
    assert str(TOOLS_MAX) in problem.message


def test_case_31_patterns_that_are_refused_are_not_compiled_without_end() -> None:
    rules = [{"when": f"args.a{n}.matches('\\\\pL{{1000}}')"} for n in range(400)]

    (problem,) = program_problems(policy(*rules))

    assert problem.code == "too_large"


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", "(", "[z-a]", "a{1001}", "(a)\\\\1", "a**"])
def test_pattern_that_is_none_is_told_once_and_not_as_too_large(pattern: str) -> None:
    """Nothing is known of how large it would be."""
    (problem,) = check(policy({"when": f"args.a.matches('{pattern}')"}))

    assert problem.message.startswith("the pattern of matches() cannot be used: ")
    assert program_problems(policy({"match": {"tools": ["[z-a]"] * 50}})) == ()


def test_case_31_pattern_that_is_too_large_alone_is_refused_with_the_bound_and_what_to_write() -> None:
    document = policy({"when": "args.a == 'x'"}, {"when": "args.a.matches('^(.{1,30} ){30}$')"})

    (problem,) = program_problems(document)

    assert (problem.path, problem.code) == ("rules[1].when", "too_large")
    assert str(PATTERN_MAX) in problem.message
    assert "size(args.a) <= 600" in problem.message
