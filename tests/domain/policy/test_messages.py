"""What is said of a policy, a tool or a case with mistakes: plain words, the path of the field, and all at once."""

import re
from typing import Any

import pytest

from schemas.policy_problems import PolicyRefused
from services.domain.policy.cases import parse_cases
from services.domain.policy.check import Beside, check_beside, check_text, check_value

CASE = "cases: [{name: a, call: {tool: x}, expect: {effect: hold}}]"
MANY = """
policy: p
scope: [a]
defaults: {timeout_seconds: abc, on_timeout: 5, unknown_tool: allow}
rules:
  - {id: a b, then: maybe, when: args.x >, match: {tools: x, annotations: {destructiveHint: 1}},
     hold: {quorum: 0, roles: cfo, timeout_seconds: -1, remember: {max_uses: abc, scopes: [x]}, question: '{{arg.x}}',
            on_timeout: {default: 7}, escalate: {after_seconds: true, roles: []}}}
  - 5
  - {id: 5, then: allow, when: 5}
  - {id: c, then: allow, when: args.x and args.y, match: {tools: ['[z-a]']}}
  - {id: d, then: null}
"""


def said(text: str) -> dict[str, str]:
    _, problems = check_text(text)
    return {problem.path: problem.message for problem in problems}


def test_messages_of_form_are_in_plain_words_with_the_path_of_the_field() -> None:
    found = said(MANY)

    assert found["rules[0].match.tools"] == 'a list is needed here, found "x"'
    assert found["rules[0].hold.roles"] == 'a list is needed here, found "cfo"'
    assert found["scope"] == 'a mapping of fields to values is needed here, found ["a"]'
    assert found["defaults.timeout_seconds"] == 'a number is needed here, found "abc"'
    assert found["defaults.on_timeout"] == (
        "'deny', 'halt', 'escalate', 'wait' or {default: TEXT} is needed here, found 5"
    )
    assert found["defaults.unknown_tool"] == "'hold' or 'deny' is needed here, found \"allow\""
    assert found["rules[0].hold.remember.max_uses"] == (
        "a whole number or 'unlimited' is needed here, found \"abc\""
    )
    assert found["rules[0].hold.escalate.after_seconds"] == "a number is needed here, found true"
    assert found["rules[0].hold.escalate.roles"] == "at least 1 item(s) is needed here, found []"
    assert found["rules[2].when"] == "a text is needed here, found 5"
    assert found["rules[4].then"] == "this field is empty; give it a value or remove it"


def test_messages_have_no_words_of_python() -> None:
    foreign = re.compile(
        r"\b(tuple|dict|dictionary|NoneType|None|True|str|int|float|bool|instance|Input|Extra)\b"
    )

    assert [one for one in said(MANY).values() if foreign.search(one)] == []


def test_errors_of_form_hide_no_error_of_a_condition_a_pattern_or_a_question() -> None:
    found = said(MANY)

    assert found["rules[0].when"] == "it ends too early; something is missing"
    assert found["rules[0].hold.question"].startswith("unknown")
    assert found["rules[3].when"] == "'and' is not a word of CEL; write '&&'"
    assert "rules[3].match.tools[0]" in found


FAULTS = {
    "zone": ("now.getHours('Europe/Berln') > 3", "there is no time zone 'Europe/Berln'"),
    "time": ("timestamp('2026-13-01T00:00:00Z') < now", "'2026-13-01T00:00:00Z' is not a time"),
    "duration": ("duration('1h') + now > now", "a time cannot be added to a duration"),
    "null": ("null in {1: args.x}", "null cannot be a key of a map"),
    "name": ("tool.annotations.readonlyHint", "tool.annotations has no field 'readonlyHint'"),
    "word": ("risk.level == 'hihg'", "risk.level is never 'hihg'"),
    "pattern": ("args.x.matches('(?=a)')", "the pattern of matches() cannot be used"),
    "size": ("args.x.matches('.{1000}')", "a pattern has at most 5000 instructions"),
    "number": ("args.x * 2 > 3.0", "args.x is a double"),
    "syntax": ("args.x +", "it ends too early; something is missing"),
}


def test_every_fault_is_told_whatever_else_is_wrong() -> None:
    rules = [{"id": name, "then": "hold", "when": when} for name, (when, _) in FAULTS.items()]
    form = [
        {"id": "form", "then": "maybe", "match": {"annotations": {"readonlyHint": True}}},
        {"id": "tools", "then": "hold", "match": {"tools": ["[z-a]", 5, "sendmoney"]}},
        {"id": "question", "then": "hold", "hold": {"quorum": 0, "question": "{{tool.annotations.x}}"}},
        "none",
    ]
    document = {"policy": "p", "scope": {"tenant": "other", "user": "[z-a]"}, "rules": rules}

    _, well_formed = check_value(document, {"send_money"}, "acme")
    _, problems = check_value(document | {"rules": [*rules, *form]}, {"send_money"}, "acme")

    said = {(problem.path, problem.message) for problem in problems}
    for index, (_, message) in enumerate(FAULTS.values()):
        # Once each: nothing else is said of it.
        assert [one for path, one in said if path == f"rules[{index}].when" and one.startswith(message)]
    assert {(problem.path, problem.message) for problem in well_formed} <= said
    count = len(FAULTS)
    assert {path for path, _ in said} - {f"rules[{index}].when" for index in range(count)} == {
        *("scope.tenant", "scope.user", f"rules[{count}].then"),
        f"rules[{count}].match.annotations.readonlyHint",
        *(f"rules[{count + 1}].match.tools[{number}]" for number in range(3)),
        *(f"rules[{count + 2}].hold.quorum", f"rules[{count + 2}].hold.question", f"rules[{count + 3}]"),
    }


def test_wrong_name_and_foreign_scope_are_told_beside_faults_of_form() -> None:
    document = {"policy": "q", "scope": {"project": "other"}, "rulez": []}

    _, problems = check_beside(document, "p", Beside("acme", "web"))

    assert [problem.path for problem in problems] == ["policy", "scope.project", "rulez"]


def test_problems_are_errors_before_warnings_and_then_in_the_order_of_the_rules() -> None:
    doubtful = {"id": "r0", "match": {"tools": ["payy"]}, "then": "deny"}
    faulty = {"match": {"tools": ["pay"]}, "when": "args.amount >", "then": "hold"}
    document = {
        "policy": "p",
        "rules": [doubtful, *({"id": f"r{number}", **faulty} for number in range(1, 12))],
    }

    _, problems = check_beside(document, "p", Beside("acme", "web", tools=frozenset({"pay"})))

    severities = [problem.severity for problem in problems]
    assert severities == sorted(severities)
    assert set(severities) == {"error", "warning"}
    rules = [problem.path.split(".")[0] for problem in problems if problem.severity == "error"]
    assert rules == [f"rules[{number}]" for number in range(1, 12)]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"policy": 5, "rules": {}},
        {"policy": "p", "rules": [None, [], {"match": [], "hold": 5, "when": ""}]},
    ],
)
def test_what_is_no_policy_at_all_is_refused_and_nothing_else(value: Any) -> None:
    document, problems = check_value(value, set(), "acme")

    assert document is None
    assert {problem.severity for problem in problems} == {"error"}


def test_every_part_of_a_rule_that_does_not_compile_is_named() -> None:
    text = "policy: p\nrules: [{id: a, then: hold, when: args.x >, match: {tools: ['[z-a]', 'x', '[b-a]']}}]"

    assert list(said(text)) == ["rules[0].when", "rules[0].match.tools[0]", "rules[0].match.tools[2]"]


@pytest.mark.parametrize(
    ("rule", "path", "message"),
    [
        (
            "match: {annotations: {readonlyHint: true}}",
            "rules[0].match.annotations.readonlyHint",
            "unknown field 'readonlyHint'; did you mean 'readOnlyHint'?",
        ),
        (
            "match: {annotations: {readonlyHint}}",
            "rules[0].match.annotations.readonlyHint",
            "unknown field 'readonlyHint'; did you mean 'readOnlyHint'?",
        ),
        (
            "match: {readOnlyHint: true}",
            "rules[0].match.readOnlyHint",
            "unknown field 'readOnlyHint' here; it belongs in rules.match.annotations",
        ),
        ("hold: {quorm: 2}", "rules[0].hold.quorm", "unknown field 'quorm'; did you mean 'quorum'?"),
        (
            "match: {colour: red}",
            "rules[0].match.colour",
            "unknown field 'colour'; remove it, or write one of annotations, tools, tools_like",
        ),
    ],
)
def test_unknown_field_is_told_with_the_right_spelling_or_place(rule: str, path: str, message: str) -> None:
    assert said(f"policy: p\nrules: [{{id: a, then: hold, {rule}}}]")[path] == message


@pytest.mark.parametrize(
    ("cases", "path", "near"),
    [
        (
            "tools: {x: {annotations: {readonlyHint: true}}}\n" + CASE,
            "tools.x.annotations.readonlyHint",
            "did you mean 'readOnlyHint'?",
        ),
        (
            CASE.replace("tool: x", "tool: x, claimed_annotations: {destructivehint: true}"),
            "cases[0].call.claimed_annotations.destructivehint",
            "did you mean 'destructiveHint'?",
        ),
        (
            "tools: {x: {annotations: {readOnlyHint: 'yes'}}}\n" + CASE,
            "tools.x.annotations.readOnlyHint",
            'true or false is needed here, found "yes"',
        ),
        (
            "tools: {x: {idempotend: true}}\n" + CASE,
            "tools.x.idempotend",
            "did you mean 'idempotent'?",
        ),
        (
            "cases: [{name: a, call: {tol: x}, expect: {effect: hold}}]",
            "cases[0].call.tol",
            "did you mean 'tool'?",
        ),
    ],
)
def test_misspelt_annotation_in_a_case_is_refused_with_the_right_spelling(
    cases: str, path: str, near: str
) -> None:
    with pytest.raises(PolicyRefused) as refused:
        parse_cases(cases)

    assert near in {problem.path: problem.message for problem in refused.value.problems}[path]


def test_every_fault_of_a_case_file_is_told_at_once() -> None:
    tools = "tools: {x: {idempotend: true, lease_seconds: 1}}"
    text = f"{tools}\ncases: [{{name: a, call: {{tol: x}}, expect: {{effect: hold}}}}]"

    with pytest.raises(PolicyRefused) as refused:
        parse_cases(text)

    assert {problem.path for problem in refused.value.problems} == {
        *("cases[0].call.tool", "cases[0].call.tol", "tools.x.idempotend", "tools.x.lease_seconds"),
    }


def test_claims_may_have_other_annotations_than_the_hints() -> None:
    claimed = (
        "cases: [{name: a, call: {tool: x, claimed_annotations: {approved: true}}, expect: {effect: hold}}]"
    )

    assert parse_cases(claimed).cases[0].call.claimed_annotations == {"approved": True}


def test_empty_adaptive_block_says_what_can_be_in_it() -> None:
    _, problems = check_value({"policy": "p", "rules": [], "adaptive": {}})

    assert [problem.message for problem in problems if problem.path == "adaptive"] == [
        "this block is empty; write one of allow_when, sample_rate, floor, or remove it"
    ]
