from typing import Any

import pytest

from services.domain.policy.check import check_text, check_value
from tests.policy_documents import check, parse_policy


def codes(text: str, **options: Any) -> list[tuple[str, str, str]]:
    return [(p.path, p.code, p.severity) for p in check(parse_policy(text), **options)]


def rule(body: str) -> str:
    return f"policy: p\nrules:\n  - {{id: a, {body}}}"


def test_check_sound_document_has_no_problems() -> None:
    assert codes(rule("match: {tools: [x]}, then: allow"), known_tools={"x"}, tenant="acme") == []


def test_check_pattern_without_a_known_tool_is_a_warning() -> None:
    text = rule("match: {tools: ['send_*', 'sned_*']}, then: hold")

    assert codes(text, known_tools={"send_money"}) == [
        ("rules[0].match.tools[1]", "no_known_tool", "warning")
    ]
    assert codes(text) == []


def test_check_expression_that_does_not_compile_is_an_error() -> None:
    assert codes(rule("when: args.x >, then: hold")) == [("rules[0].when", "does_not_compile", "error")]


def test_check_rule_that_allows_everything_is_a_warning() -> None:
    assert codes(rule("then: allow")) == [("rules[0]", "allows_all", "warning")]


@pytest.mark.parametrize(
    ("hold", "found"),
    [
        ("on_timeout: escalate, timeout_seconds: 4, escalate: {after_seconds: 2, roles: [cfo]}", True),
        ("on_timeout: escalate, escalate: {after_seconds: 2, roles: [cfo]}", True),
        ("on_timeout: escalate, timeout_seconds: 4, escalate: {after_seconds: 4, roles: [cfo]}", False),
        ("on_timeout: deny, timeout_seconds: 4, escalate: {after_seconds: 2, roles: [cfo]}", False),
    ],
)
def test_check_hold_that_has_escalated_before_its_timeout_is_a_warning(hold: str, found: bool) -> None:
    expected = [("rules[0].hold.on_timeout", "escalates_before", "warning")] if found else []
    assert codes(rule(f"match: {{tools: [pay]}}, then: hold, hold: {{{hold}}}")) == expected


def test_check_rule_behind_one_that_takes_all_is_a_warning() -> None:
    text = "policy: p\nrules: [{id: a, then: hold}, {id: b, then: deny}]"

    assert codes(text) == [("rules[1]", "unreachable", "warning")]


def test_check_scope_of_another_tenant_is_an_error() -> None:
    assert codes("policy: p\nscope: {tenant: globex}", tenant="acme") == [
        ("scope.tenant", "foreign_tenant", "error")
    ]
    assert codes("policy: p\nscope: {tenant: 'ac*'}", tenant="acme") == []


def test_check_text_wrong_form_gives_problems_and_no_document() -> None:
    document, problems = check_text("policy: p\nrulez: []")

    assert document is None
    assert [problem.code for problem in problems] == ["unknown_field"]


def test_check_text_right_form_gives_the_document() -> None:
    document, problems = check_text("policy: p")

    assert document is not None
    assert problems == []


@pytest.mark.parametrize(
    ("remember", "found"),
    [
        ("{scopes: [rule]}", ["reads_nothing"]),
        ("{scopes: [execution], max_uses: unlimited}", ["reads_nothing"]),
        ("{scopes: [rule], max_uses: unlimited}", []),
    ],
)
def test_check_of_a_condition_that_reads_what_no_rule_remembers_is_a_warning(
    remember: str, found: list[str]
) -> None:
    text = (
        "policy: p\nrules:\n"
        "  - {id: known, match: {tools: [pay]}, when: args.to in memory.approved('to'), then: allow}\n"
        f"  - {{id: ask, then: hold, hold: {{remember: {remember}}}}}\n"
    )
    _, problems = check_text(text)
    assert [problem.code for problem in problems] == found
    assert all(problem.severity == "warning" for problem in problems)


@pytest.mark.parametrize("field", ["reviewers", "excluded"])
@pytest.mark.parametrize("name", ["eve ", " eve", "ana\u200b", "placet:timer"])
def test_check_of_people_who_can_be_no_subject_names_them(field: str, name: str) -> None:
    """One would be waited for in vain, the other excludes nobody."""
    rule = {"id": "r", "then": "hold", "hold": {field: ["bob", name]}}
    document, problems = check_value({"policy": "p", "rules": [rule]})
    assert document is not None
    assert [(one.path, one.code, one.severity) for one in problems] == [
        (f"rules[0].hold.{field}[1]", "no_subject", "error")
    ]
