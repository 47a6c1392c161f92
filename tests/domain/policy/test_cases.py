from pathlib import Path

import pytest

from schemas.policy_problems import PolicyRefused
from services.domain.policy.cases import CaseResult, parse_cases, run_policy_tests
from tests.policy_documents import check, parse_policy

POLICIES = Path(__file__).parents[3] / "policies"
DEFAULT = parse_policy((POLICIES / "default.yaml").read_text())
DEFAULT_CASES = parse_cases((POLICIES / "default.tests.yaml").read_text())


def test_default_policy_has_no_problems() -> None:
    assert check(DEFAULT, tenant="acme") == []


def test_default_policy_every_rule_is_tried_by_a_case() -> None:
    tried = {case.expect.rule for case in DEFAULT_CASES.cases}

    assert {rule.id for rule in DEFAULT.rules} <= tried


@pytest.mark.parametrize("result", run_policy_tests(DEFAULT, DEFAULT_CASES), ids=lambda result: result.name)
def test_default_policy_judges_as_its_cases_say(result: CaseResult) -> None:
    assert result.passed, result.differences


def test_run_policy_tests_wrong_expectation_says_what_differs() -> None:
    cases = parse_cases(
        "cases: [{name: n, call: {tool: x}, expect: {effect: allow, rule: reads, reason: matched}}]"
    )
    (result,) = run_policy_tests(DEFAULT, cases)

    assert not result.passed
    assert [text.split(":")[0] for text in result.differences] == ["effect", "rule", "reason"]
    assert "expected 'allow', found 'hold'" in result.differences[0]


def test_run_policy_tests_case_has_its_own_tenant_and_time() -> None:
    document = parse_policy(
        "policy: p\nscope: {tenant: acme}\nrules: [{id: a, when: now.getFullYear() == 2030, then: deny}]"
    )
    cases = parse_cases(
        """
cases:
  - {name: then, call: {tool: x, tenant: acme, now: "2030-01-01T00:00:00Z"}, expect: {effect: deny, rule: a}}
  - {name: now, call: {tool: x, tenant: acme}, expect: {effect: hold, rule: ""}}
  - {name: elsewhere, call: {tool: x, tenant: globex}, expect: {effect: hold, reason: no_policy}}
"""
    )

    assert [result.passed for result in run_policy_tests(document, cases)] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("cases: []", "cases", "invalid"),
        ("cases: [{name: n, call: {tool: x}, expect: {}}]", "cases[0].expect.effect", "missing"),
        ("cases: [{name: n, call: {tol: x}, expect: {effect: hold}}]", "cases[0].call.tol", "unknown_field"),
        (
            "cases: [{name: n, call: {tool: x, now: '2030-01-01T00:00:00'}, expect: {effect: hold}}]",
            "cases[0].call.now",
            "invalid",
        ),
        ("cases: *x", "line 1, column 8", "malformed"),
    ],
)
def test_parse_cases_mistake_is_refused_at_its_path(text: str, path: str, code: str) -> None:
    with pytest.raises(PolicyRefused) as error:
        parse_cases(text)

    assert (path, code) in [(problem.path, problem.code) for problem in error.value.problems]


@pytest.mark.parametrize(
    ("remember", "known"),
    [("{max_uses: unlimited}", True), ("{max_uses: 1000}", False), ("{scopes: [execution]}", False)],
)
def test_run_policy_tests_case_says_what_was_approved_before(remember: str, known: bool) -> None:
    """As in force: values allow nothing where no rule without a limit may be made of the hold."""
    allows = "{id: a, when: args.to in memory.approved('to'), then: allow}"
    asks = f"{{id: b, then: hold, hold: {{remember: {remember}}}}}"
    document = parse_policy(f"policy: p\nrules: [{allows}, {asks}]")
    cases = parse_cases(
        """
tools: {pay: {annotations: {destructiveHint: false}}}
cases:
  - {name: k, call: {tool: pay, arguments: {to: GB29}, memory: {to: [GB29]}}, expect: {effect: allow, rule: a}}
  - {name: u, call: {tool: pay, arguments: {to: GB30}, memory: {to: [GB29]}}, expect: {effect: hold, rule: b}}
  - {name: n, call: {tool: pay, arguments: {to: GB29}}, expect: {effect: hold, rule: b}}
"""
    )

    assert [result.passed for result in run_policy_tests(document, cases)] == [known, True, True]


def test_run_policy_tests_case_of_a_condition_that_negates_what_was_approved() -> None:
    document = parse_policy(
        """
policy: p
rules:
  - {id: a, when: size(memory.approved('to')) > 0 && !(args.to in memory.approved('to')), then: deny}
  - {id: b, then: allow}
"""
    )
    cases = parse_cases(
        """
tools: {pay: {annotations: {destructiveHint: false}}}
cases:
  - {name: k, call: {tool: pay, arguments: {to: GB29}, memory: {to: [GB29]}}, expect: {effect: allow}}
  - {name: u, call: {tool: pay, arguments: {to: GB30}, memory: {to: [GB29]}}, expect: {effect: deny, rule: a}}
  - {name: n, call: {tool: pay, arguments: {to: GB29}}, expect: {effect: allow}}
"""
    )

    assert [result.passed for result in run_policy_tests(document, cases)] == [True, True, True]
