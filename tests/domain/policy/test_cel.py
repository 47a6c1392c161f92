import contextlib
import logging
import threading
import time
from typing import Any

import pytest

from services.domain.policy import Bindings, EvaluationFailed, ExpressionTooLarge
from services.domain.policy.cel import (
    MAX_COST,
    DoesNotCompile,
    compile_expression,
    cost_of,
    evaluate_in_process,
)

NOW_MS = 1_767_614_400_000


def evaluate(source: str, **variables: object) -> bool:
    expression = compile_expression(source)
    return evaluate_in_process(expression, Bindings(variables, NOW_MS, expression.shape.reads))


@pytest.mark.parametrize("literal", ["500.0", "500"])
@pytest.mark.parametrize(
    ("amount", "over"), [(500, False), (501, True), (98.7, False), (500.01, True), (500.0, False)]
)
def test_evaluate_comparison_of_json_numbers_works_for_ints_and_doubles(
    literal: str, amount: float, over: bool
) -> None:
    assert evaluate(f"args.amount > {literal}", args={"amount": amount}) is over


@pytest.mark.parametrize("amount", [2, 2.0, 2.5])
def test_evaluate_arithmetic_depends_on_the_literal_and_not_on_the_number(amount: float) -> None:
    assert evaluate("args.amount * 2.0 < 6.0", args={"amount": amount}) is True
    with pytest.raises(EvaluationFailed):
        evaluate("args.amount * 2 < 6", args={"amount": amount})


@pytest.mark.parametrize(
    ("source", "variables", "answer"),
    [
        ("args.s == 'a'", {"args": {"s": "a"}}, True),
        ("args.n in [1, 2]", {"args": {"n": 2}}, True),
        ("args.l == [1, 2]", {"args": {"l": [1, 2]}}, True),
        ("args.l[0] == 1", {"args": {"l": [1]}}, True),
        ("has(args.x) && args.x == 1", {"args": {}}, False),
        ("has(args.x.y)", {"args": {"x": {}}}, False),
        ("args['x'] == 1", {"args": {"x": 1}}, True),
        ("size(args) == 2", {"args": {"x": 1, "y": 2}}, True),
        ("'x' in args && args.y == 2", {"args": {"x": 1, "y": 2}}, True),
        ("int(args.n) % 2 == 0", {"args": {"n": 4}}, True),
        ("args.s.matches('^a+$')", {"args": {"s": "aaa"}}, True),
        (
            "args.s.matches('\\\\d') && args.matches == 'matches(1)'",
            {"args": {"s": "a1", "matches": "matches(1)"}},
            True,
        ),
        ("args.s.matches('\\\\d')", {"args": {"s": "٣"}}, False),
        ("args.l.all(x, !x.matches('^b'))", {"args": {"l": ["a", "ab"]}}, True),
        ("args.n.matches('a') || true", {"args": {"n": 5}}, True),
        ("args.l.exists(x, x.k == 'b' && x.n > 1)", {"args": {"l": [{"k": "b", "n": 2}]}}, True),
        (
            "agent == 'bot' && user == '' && workspace == 'w'",
            {"agent": "bot", "user": "", "workspace": "w"},
            True,
        ),
        ("tool.annotations.readOnlyHint", {"tool": {"annotations": {"readOnlyHint": True}}}, True),
        ("execution.context.env == 'prod'", {"execution": {"context": {"env": "prod"}}}, True),
        (
            "trust.successes * 0.1 >= risk.required",
            {"trust": {"successes": 9}, "risk": {"required": 0.8}},
            True,
        ),
        ("now < timestamp('2026-01-06T00:00:00Z')", {}, True),
        ("now.getHours() == 12", {}, True),
        ("now - duration('1h') < now", {}, True),
        ("args.flag", {"args": {"flag": True}}, True),
        ("args.n > 1.0 // a comment with a ' in it", {"args": {"n": 2}}, True),
    ],
)
def test_evaluate_expression_gives_its_answer(source: str, variables: dict[str, Any], answer: Any) -> None:
    assert evaluate(source, **variables) is answer


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("args.missing == 1", {"args": {}}),
        ("args.s > 1", {"args": {"s": "a"}}),
        ("args.flag", {"args": {"flag": 1}}),
        ("args.flag", {"args": {"flag": "true"}}),
        ("args.flag", {"args": {"flag": None}}),
        ("int(args.n) / 0 > 1 || args.l[5] == 1", {"args": {"n": 1, "l": []}}),
        ("trust.successes > 5.0", {"trust": None}),
        ("args.n > 1", {"args": {"n": float("nan")}}),
        ("args.n > 1", {"args": {"n": float("inf")}}),
        ("args.n > 1", {"args": {"n": 2**53}}),
        ("args.s == 'a'", {"args": {"s": "\ud800"}}),
        ("args.s == 'a'", {"args": {"s": object()}}),
        ("url_host(args.u) == 'a'", {"args": {"u": "nonsense"}}),
        ("url_host(args.u) == 'a'", {"args": {"u": 5}}),
    ],
)
def test_evaluate_without_an_answer_fails(source: str, variables: dict[str, Any]) -> None:
    with pytest.raises(EvaluationFailed):
        evaluate(source, **variables)


@pytest.mark.parametrize(
    "source",
    [
        "url_host(args.u) == 'a' || true",
        "true ? (url_host(args.u) == 'a' || true) : false",
        "[args.u].exists(u, url_host(u) == 'a' || true)",
        "!(url_host(args.u) == 'a' && false)",
    ],
)
def test_evaluate_failing_function_counts_even_where_cel_would_absorb_it(source: str) -> None:
    with pytest.raises(EvaluationFailed):
        evaluate(source, args={"u": "http://a@b"})


def test_evaluate_too_deep_arguments_fail() -> None:
    value: object = 1
    for _ in range(80):
        value = [value]
    with pytest.raises(EvaluationFailed, match="deeper"):
        evaluate("size(args.x) == 1", args={"x": value})


def test_bindings_after_a_failed_reading_fail_again() -> None:
    first = compile_expression("args.a == 1 && has(args.b)")
    bindings = Bindings({"args": {"a": 1, "b": float("nan")}}, NOW_MS, first.shape.reads)

    for _ in range(2):
        with pytest.raises(EvaluationFailed):
            evaluate_in_process(first, bindings)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("args.amount >", "ends too early; something is missing"),
        ("arg.amount > 1", "did you mean 'args'"),
        ("tool.nmae == 'x'", "did you mean 'name'"),
        ("tool == 'x'", "is a map"),
        ("risk.sorce > 0.5", "did you mean 'score'"),
        ("execution.contxt.a == 1", "did you mean 'context'"),
        ("args.x in memory", "memory.approved"),
        ("args.x in memory['recipient']", "memory.approved"),
        ("args.x in memory.recipient", "memory.approved"),
        ("args.x in memory.approved(args)", "in quotes"),
        ("args.x in memory.approved('a', 'b')", "memory.approved"),
        ("args.x in memory.denied('a')", "memory.approved"),
        ("size(memory) == 0", "memory.approved"),
        ("url_hots(args.u) == 'x'", "unknown function 'url_hots'; did you mean 'url_host'?"),
        ("args.u.startswith('x')", "did you mean 'startsWith'?"),
        ("args.u.starts_with('x')", "did you mean 'startsWith'?"),
        ("args.u.contain('x')", "did you mean 'contains'?"),
        ("amount > 500.0", "an argument of the call is args.amount"),
        ("args.iban == GB29", "a text needs quotes"),
        ("args.amount = 500.0", "write '==' to compare"),
        ("args.u is 'x'", "'is' cannot be used right before a text; compare with '=='"),
        ("args.u == b'x'", "byte strings"),
        ("args.u.url_host() == 'x'", "write url_host"),
        ("url_host(args.u, args.v) == 'x'", "argument"),
        ("sql_kind() == 'x'", "argument"),
        ("sql_kind(args.s, 'postgrs') == 'select'", "unknown SQL dialect"),
        ("sql_kind(args.s, args.d) == 'select'", "in quotes"),
        ("args.s.matches(args.pattern)", "in quotes"),
        ("matches(args.s, args.pattern)", "write value.matches"),
        ("matches(args.s, 'a')", "write value.matches"),
        ("'a'.matches('(')", "pattern of matches.. cannot be used"),
        ("args.s.matches('\\\\pL{900}')", "pattern of matches"),
        ("1 + 1", "neither true nor false"),
        ("'yes'", "neither true nor false"),
        ("args.l.all(x, y > 1)", "unknown name 'y'"),
        (".args.x == 1", "dot"),
        ("Point{x: 1} == args.p", "unknown name 'Point'"),
        ("b'a' == args.x", "byte strings"),
        ('"""a""" == args.x', "triple quotes"),
        ("args.`x-y` == 1", "cannot be read"),
        ("(" * 40 + "true" + ")" * 40, "nested deeper"),
        ("(args.x == 1", "never closed"),
        ("args.x == 1)", "closes nothing"),
    ],
)
def test_compile_mistake_is_refused_with_a_sentence(source: str, said: str) -> None:
    with pytest.raises(DoesNotCompile, match=said):
        compile_expression(source)


@pytest.mark.parametrize(
    "source",
    ["!" * 1990 + "true", "-" * 1990 + "1.0 > 0.0", "args" + ".b" * 990 + " == 1", "true" + "&&true" * 390],
)
def test_compile_longest_expressions_do_not_exhaust_the_stack(source: str) -> None:
    expression = compile_expression(source)
    bindings = Bindings({"args": {"b": 1}}, 0, expression.shape.reads)

    with contextlib.suppress(EvaluationFailed):
        assert evaluate_in_process(expression, bindings) in (True, False)


def test_compile_same_source_is_compiled_once() -> None:
    assert compile_expression("args.a == 1") is compile_expression("args.a == 1")


def test_compiled_expression_works_in_another_thread() -> None:
    expression = compile_expression("args.a == 1.0 && url_host(args.u) == 'a.com'")
    answers: list[bool] = []

    def work() -> None:
        variables = {"args": {"a": 1, "u": "http://a.com"}}
        answers.append(evaluate_in_process(expression, Bindings(variables, 0, expression.shape.reads)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert answers == [True]


NESTED = "args.l.all(x, args.l.all(y, x + y >= 0.0))"


def test_evaluate_nested_all_over_a_thousand_is_refused_at_once() -> None:
    with pytest.raises(ExpressionTooLarge):
        evaluate(NESTED, args={"l": [1.0] * 1000})


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.l.map(x, x).size() > 0", {"l": [1.0] * 1000}),
        ("args.l.filter(x, true).size() > 0", {"l": [1.0] * 1000}),
        ("args.l.all(x, x in args.l)", {"l": [1.0] * 1000}),
        ("args.l.all(x, args.l == args.l)", {"l": [1.0] * 1000}),
        ("args.l.all(x, args.s.contains(x))", {"l": ["z"] * 500, "s": "a" * 200_000}),
        ("args.l.all(x, sql_kind(args.s) == 'select')", {"l": [1.0] * 500, "s": "select 1"}),
        ("sql_kind(args.s) == 'select'", {"s": "select 1" + " or 1" * 3000}),
        ("args.l.map(x, args.l + args.l).all(y, y.all(z, z == 1.0))", {"l": [1.0] * 200}),
        ("size(args) > 0", {"l": [1.0] * 30_000}),
    ],
)
def test_evaluate_work_that_may_be_large_is_refused(source: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ExpressionTooLarge):
        evaluate(source, args=arguments)


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.l.all(x, x >= 0.0)", {"l": [1.0] * 100}),
        ("args.l.all(x, x.kind in ['a', 'b'] && x.n < 10)", {"l": [{"kind": "a", "n": 1}] * 30}),
        ("args.l.all(x, args.allowed.exists(y, y == x))", {"l": ["a"] * 5, "allowed": ["a"] * 5}),
        ("sql_kind(args.s) == 'select'", {"s": "select 1" + " or 1" * 5}),
        ("args.a == 1", {"a": 1, "unread": [1.0] * 100_000}),
    ],
)
def test_evaluate_usual_work_is_done_in_process(source: str, arguments: dict[str, Any]) -> None:
    assert evaluate(source, args=arguments) is True


def test_cost_of_grows_with_depth() -> None:
    one = compile_expression("args.l.all(x, x >= 0.0)")
    two = compile_expression(NESTED)
    bindings = Bindings({"args": {"l": [1.0] * 50}}, 0, one.shape.reads | two.shape.reads)

    assert cost_of(one, bindings) < MAX_COST < cost_of(two, bindings)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("args.to in memory.approved('to')", True),
        ("args.amount in memory.approved('amount')", True),
        ("args.other in memory.approved('to')", False),
        ("args.to in memory.approved('nothing')", False),
        ("size(memory.approved('to')) == 2", True),
        ("memory.approved('to').exists(x, x == args.to)", True),
        ("args.to == 'memory.approved(' || args.to in memory . approved ( 'to' ) // what people said", True),
    ],
)
def test_memory_is_the_list_of_what_was_approved_and_never_missing(source: str, said: bool) -> None:
    args = {"to": "GB29", "amount": 5, "other": "GB30"}
    memory = {"to": ["GB1", "GB29"], "amount": (5.0,)}
    assert evaluate(source, args=args, memory=memory) is said
    assert evaluate("args.to in memory.approved('to')", args=args) is False


def test_memory_that_is_large_costs_as_much_as_it_is() -> None:
    expression = compile_expression("args.to in memory.approved('to')")
    bindings = Bindings(
        {"args": {"to": "x"}, "memory": {"to": ["y"] * 10_000}}, NOW_MS, expression.shape.reads
    )
    assert cost_of(expression, bindings) > 10_000


def test_case_31_pattern_that_is_large_for_other_engines_is_evaluated_at_once() -> None:
    """The binding's own engine took half a second to say, at each evaluation, that this is too large for it."""
    expression = compile_expression("args.s.matches('(\\\\w{1,30}\\\\s){30}')")
    reads = expression.shape.reads
    start = time.process_time()

    assert evaluate_in_process(expression, Bindings({"args": {"s": "ab " * 30}}, 0, reads))
    assert not evaluate_in_process(expression, Bindings({"args": {"s": "ab " * 29}}, 0, reads))
    assert time.process_time() - start < 0.1


def test_evaluate_matches_of_what_is_no_text_fails() -> None:
    with pytest.raises(EvaluationFailed):
        evaluate("args.n.matches('a')", args={"n": 5})


def test_evaluate_function_that_fails_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(EvaluationFailed, match="matches"):
        evaluate("args.s.matches('a')", args={"s": 5})
    assert caplog.records == []


def test_exists_ends_with_the_error_of_a_value_before_the_one_that_is_found() -> None:
    """CEL would go on; docs/policy.md says so."""
    items = [{"free": True}, {"limit": 2}]
    assert evaluate("args.l.exists(x, has(x.limit) && x.limit > 1.0)", args={"l": items}) is True
    with pytest.raises(EvaluationFailed):
        evaluate("args.l.exists(x, x.limit > 1.0)", args={"l": items})
