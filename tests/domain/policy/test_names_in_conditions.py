"""Names of a condition that no call has: refused on publishing in every form, and read where they are in force."""

import re
from pathlib import Path
from typing import Any

import pytest

from schemas.policy_document import policy_from_value
from schemas.policy_problems import PROBLEMS_MAX, PolicyRefused
from schemas.principals import People
from schemas.risk_score import HISTORY_WEIGHTS, WEIGHTS
from services.domain.policy import Bindings, PolicySet, judge
from services.domain.policy.cases import TrustCase, parse_cases
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.check import check_value
from services.domain.policy.failures import EvaluationFailed
from services.domain.policy.tool_facts import tool_views
from services.domain.policy.visible import VISIBLE, Kind, variables_of
from services.domain.trust.book import KnownTrust
from services.domain.trust.counting import combine
from services.domain.trust.reading import trust_value
from tests.domain.policy.builders import NOW_MS, call
from tests.policy_documents import check

TEXT = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
HINT = "tool.annotations has no field {!r}; did you mean 'readOnlyHint'?"


def policy(**rule: Any) -> dict[str, Any]:
    return {"policy": "p", "rules": [{"id": "a", "then": "deny", **rule}]}


def said(when: str) -> list[str]:
    problems = check(policy_from_value(policy(when=when)))
    assert {problem.path for problem in problems} <= {"rules[0].when"}
    return [problem.message for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("tool.annotations.readonlyHint", HINT.format("readonlyHint")),
        ("tool.annotations.readOnlyhint == true", HINT.format("readOnlyhint")),
        ("tool . annotations . readOnlyhint", HINT.format("readOnlyhint")),
        ("tool.annotations['readonlyHint']", HINT.format("readonlyHint")),
        ("tool['annotations'].readonlyHint", HINT.format("readonlyHint")),
        ("tool['annotations'][\"readonlyHint\"]", HINT.format("readonlyHint")),
        ("(tool.annotations).readonlyHint", HINT.format("readonlyHint")),
        ("has(tool.annotations.readonlyHint)", HINT.format("readonlyHint")),
        ("'readonlyHint' in tool.annotations", HINT.format("readonlyHint")),
        ("!('readonlyHint' in (tool.annotations))", HINT.format("readonlyHint")),
        ("tool['nam'] == 'x'", "tool has no field 'nam'; did you mean 'name'?"),
        ("execution['tenent'] == 'x'", "execution has no field 'tenent'; did you mean 'tenant'?"),
        ("risk['scor'] > 0.5", "risk has no field 'scor'; did you mean 'score'?"),
        ("trust.success > 3.0", "trust has no field 'success'; did you mean 'successes'?"),
        ("trust.lower_bond > 0.9", "trust has no field 'lower_bond'; did you mean 'lower_bound'?"),
        ("trust['success'] > 3.0", "trust has no field 'success'; did you mean 'successes'?"),
        ("'success' in trust", "trust has no field 'success'; did you mean 'successes'?"),
        (
            "trust != null && trust.qqq > 0.9",
            "trust has no field 'qqq'; it has approvals, contrary_at, edits, failures, ",
        ),
        (
            "tool.annotations.exists(hint, hint == 'readonlyHint' && tool.annotations[hint])",
            "hint is never 'readonlyHint'; did you mean 'readOnlyHint'?",
        ),
        (
            "args.l.exists(x, tool.annotations.exists(x, x == 'readonlyHint'))",
            "x is never 'readonlyHint'; did",
        ),
        ("risk.parts.exists(part, part == 'mony')", "part is never 'mony'; did you mean 'money'?"),
        ("'mony' in risk.parts", "risk.parts never has 'mony'; did you mean 'money'?"),
        (
            "'novel' in risk.parts",
            "risk.parts never has 'novel' in a rule, only in allow_when; write novel(args.NAME), or 'novel' in",
        ),
        (
            "risk.parts.exists(part, part == 'tainted')",
            "part is never 'tainted' in a rule, only in allow_when; write tainted(args.NAME), or ",
        ),
        ("'money' in history.parts", "history.parts never has 'money'; write one of novel, tainted"),
        ("risk.parts[0] in ['money', 'mony']", "risk.parts[…] is never 'mony'; did you mean 'money'?"),
        ("risk.level == 'hi'", "risk.level is never 'hi'; "),
        ("'hihg' != risk.level", "risk.level is never 'hihg'; did you mean 'high'?"),
        ("sql_kind(args.s) == 'SELECT'", "sql_kind(…) is never 'SELECT'; did you mean 'select'?"),
        (
            "sql_kind(args.s, 'mysql') in ['select', 'drop']",
            "sql_kind(…) is never 'drop'; write one of ddl, ",
        ),
        ("agent.name == 'x'", "agent is a text and has no field 'name'"),
        ("user['name'] == 'x'", "user is a text and has no field 'name'"),
        ("tool.name.length == 1", "tool.name is a text and has no field 'length'"),
        ("risk.parts.money", "risk.parts is a list and has no field 'money'"),
        ("now.hour > 3", "now is a time and has no field 'hour'"),
        ("url_host(args.u).port == 1", "url_host(…) is a text and has no field 'port'"),
        ("edited.amount > 1.0", "edited is a truth value and has no field 'amount'"),
        ("memory.approved('to').size > 1", "memory.approved('to') is a list and has no field 'size'"),
    ],
)
def test_name_or_word_that_no_call_has_is_refused_with_the_near_one(when: str, message: str) -> None:
    (found,) = said(when)
    assert found.startswith(message)


@pytest.mark.parametrize(
    "when",
    [
        "tool.annotations.readOnlyHint && tool['annotations']['openWorldHint']",
        "has(tool.annotations.readOnlyHint) && 'readOnlyHint' in tool.annotations",
        "tool.annotations.exists(k, k == 'openWorldHint' && tool.annotations[k])",
        "trust != null && trust.successes > 3.0 && trust.failures == 0 && trust.through['0'] > 5.0",
        "execution.context.anything.at.all == 1 && execution['context']['x'] == 1",
        "args.annotations.readonlyHint && proposed.risk.level == 'hi'",
        "args.l.exists(tools, tools.annotations.readonlyHint)",
        "args.l.exists(k, tool.annotations.exists(j, j == 'readOnlyHint') && k == 'readonlyHint')",
        "risk.level + 's' == 'highs' || 'x' + risk.level == 'xhigh' || risk.level.startsWith('h')",
        "'x' in risk.parts + ['x'] || risk.parts.map(p, p + 's')[0] == 'writess'",
        "tool[args.k] == 1 || tool.annotations[args.k]",
        "args.tool.annotations.x || args.level == 'SELECT'",
        "memory.approved('to')[0].name == 'x' && now.getHours() > 3",
        "sql_kind(args.s) in ['select', 'other'] && 'money' in risk.parts && risk.level != 'high'",
    ],
)
def test_names_that_calls_have_and_whatever_is_not_sure_are_taken(when: str) -> None:
    assert said(when) == []


def said_of_block(allow_when: str) -> list[str]:
    value = policy(then="hold", when="'money' in risk.parts")
    problems = check(policy_from_value({**value, "adaptive": {"allow_when": allow_when}}))
    assert {problem.path for problem in problems} <= {"adaptive.allow_when"}
    return [problem.message for problem in problems]


@pytest.mark.parametrize("part", [*WEIGHTS, *HISTORY_WEIGHTS])
@pytest.mark.parametrize(
    "allow_when",
    [
        "trust.lower_bound >= risk.required && !({!r} in risk.parts)",
        "!risk.parts.exists(part, part == {!r})",
        "risk.parts.all(part, part != {!r} && !(part in ['money', {!r}]))",
    ],
)
def test_condition_of_the_block_may_name_every_part_of_the_risk(allow_when: str, part: str) -> None:
    assert said_of_block(allow_when.replace("{!r}", repr(part))) == []


@pytest.mark.parametrize(
    ("allow_when", "message"),
    [
        ("!('novl' in risk.parts)", "risk.parts never has 'novl'; did you mean 'novel'?"),
        (
            "!('x' in risk.parts)",
            "risk.parts never has 'x'; write one of destructive, money, not_idempotent, novel, ",
        ),
        ("risk.level != 'hihg'", "risk.level is never 'hihg'; did you mean 'high'?"),
    ],
)
def test_word_that_no_call_has_is_refused_in_the_condition_of_the_block(
    allow_when: str, message: str
) -> None:
    (found,) = said_of_block(allow_when)
    assert found.startswith(message)


def test_misspelt_name_in_a_question_is_refused() -> None:
    question = "Run {{tool.annotations.readonlyHint}} {{agent.name}} {{args.any.thing}}?"
    value = policy(then="hold", hold={"question": question})

    found = [(problem.path, problem.message) for problem in check(policy_from_value(value))]

    path = "rules[0].hold.question"
    assert found == [
        (path, HINT.format("readonlyHint")),
        (path, "agent is a text and has no field 'name'"),
    ]


@pytest.mark.parametrize("when", ["tool.annotations.readonlyHint", "trust.upper_bound > 0.9", "agent.x == 1"])
def test_policy_that_is_in_force_with_such_a_name_is_still_read_and_holds(when: str) -> None:
    policies = PolicySet().with_policy("acme", "p", 1, policy(when=when))

    verdict = judge(policies, call(tenant="acme"), NOW_MS)

    assert (verdict.effect, verdict.reason) == ("hold", "policy_error")


def test_every_documented_object_is_closed_and_has_the_documented_fields() -> None:
    table = TEXT.partition("## Conditions (CEL)")[2].partition("\n\n**")[0]
    rows = dict(re.findall(r"^\| `(tool|execution|risk|trust)` \| (.*) \|$", table, re.MULTILINE))

    assert len(rows) == 4
    for name, told in rows.items():
        fields = VISIBLE[name].fields
        assert fields is not None
        assert set(re.findall(r"`(\w+)`", told)) - {"null"} == set(fields), name
    assert len((VISIBLE["tool"].fields or {})["annotations"].fields or {}) == 4
    named = {
        name
        for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, re.MULTILINE)
        for name in row.split(", ")
    }
    assert {name.strip("`") for name in named} | {"memory"} == set(VISIBLE)


def test_every_closed_object_is_checked_in_every_form() -> None:
    places = list(_closed("", Kind(fields=VISIBLE)))
    assert {"tool", "tool.annotations", "execution", "risk", "history", "trust"} == set(places)
    for place in places:
        for when in (f"{place}.zz == 1", f"{place}['zz'] == 1", f"has({place}.zz)", f"('zz' in {place})"):
            assert any("has no field 'zz'" in one or "is a map" in one for one in said(when)), when


def _closed(path: str, kind: Kind) -> list[str]:
    below = (kind.fields or {}).items()
    found = [one for name, part in below for one in _closed(f"{path}.{name}".lstrip("."), part)]
    return [path, *found] if path and kind.fields is not None else found


def test_what_a_call_has_is_what_conditions_may_name() -> None:
    facts = call(
        trust=trust_value(KnownTrust(combine(()), (), {}), "c", 0, People().of("acme")), context={"x": 1}
    )
    (view,) = tool_views(facts.tool, facts.tool_definition, "", {})
    variables = variables_of(facts, view)

    for place in _closed("", Kind(fields=VISIBLE)):
        value: Any = variables
        kind: Kind | None = Kind(fields=VISIBLE)
        for name in place.split("."):
            value, kind = value[name], ((kind and kind.fields) or {}).get(name)
        assert kind is not None
        assert set(value) == set(kind.fields or {}), place


def test_trust_of_a_case_has_the_fields_that_deciders_know() -> None:
    # The class follows from the call.
    assert {*TrustCase.model_fields, "trust_class"} == set(VISIBLE["trust"].fields or {})
    cases = "cases: [{name: a, call: {tool: x, trust: {succeses: 1}}, expect: {effect: hold}}]"
    with pytest.raises(PolicyRefused, match="did you mean 'successes'"):
        parse_cases(cases)


@pytest.mark.parametrize(
    "when", ["risk.level == 'hi'", "'novel' in risk.parts", "sql_kind(args.s) == 'SELECT'"]
)
def test_words_that_are_refused_are_never_true(when: str) -> None:
    expression = compile_expression(when)
    (view,) = tool_views("x", None, "", {})
    bindings = Bindings({"risk": view.risk_variable, "args": {"s": "select 1"}}, 0, expression.shape.reads)
    assert evaluate_in_process(expression, bindings) is False


def test_name_that_compiling_refuses_already_is_told_once() -> None:
    _, problems = check_value(policy(when="tool.annotation.readOnlyHint"))
    assert [problem.message for problem in problems] == [
        "tool has no field 'annotation'; did you mean 'annotations'?"
    ]


def test_guarded_misspelling_would_be_silent_at_run_time() -> None:
    expression = compile_expression("'readonlyHint' in tool.annotations")
    (view,) = tool_views("x", None, "", {})
    assert (
        evaluate_in_process(expression, Bindings({"tool": view.variable}, 0, expression.shape.reads)) is False
    )
    named = compile_expression("tool.annotations.readonlyHint")
    with pytest.raises(EvaluationFailed):
        evaluate_in_process(named, Bindings({"tool": view.variable}, 0, named.shape.reads))


def test_of_very_many_unknown_names_the_first_are_told() -> None:
    rules = [
        {"id": f"r{number}", "then": "deny", "when": "||".join(f"trust.z{part}==1" for part in range(60))}
        for number in range(5)
    ]

    assert len(check(policy_from_value({"policy": "p", "rules": rules}))) == PROBLEMS_MAX
