"""Numbers that a condition cannot be counted with are told before each call fails of them."""

from __future__ import annotations

import json

import pytest

from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.failures import EvaluationFailed
from tests.policy_documents import check, parse_policy


def warnings_on(condition: str) -> list[str]:
    rules = f"[{{id: a, match: {{tools: [pay]}}, when: {json.dumps(condition)}, then: hold}}]"
    found = check(parse_policy(f"policy: p\nrules: {rules}"))
    assert {(problem.code, problem.severity) for problem in found} <= {("doubtful_number", "warning")}
    return [problem.message for problem in found]


def evaluated(condition: str, amount: object) -> bool:
    expression = compile_expression(condition)
    variables = {"args": {"amount": amount, "items": [amount]}, "proposed": {"amount": amount}}
    return evaluate_in_process(expression, Bindings(variables, 0, expression.shape.reads))


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("args.amount * 2 > 500.0", "write 2.0"),
        ("500.0 < 2 * args.amount", "write 2.0"),
        ("args.amount % 2 == 0.0", "write int(args.amount) % 2"),
        ("args['amount'] + 1 > 5.0", "write 1.0"),
        ("args.items[0] - 1 > 5.0", "write 1.0"),
        ("1 + proposed.amount > 5.0", "write 1.0"),
    ],
)
def test_whole_number_in_arithmetic_with_an_argument_is_told_since_it_always_fails(
    condition: str, advice: str
) -> None:
    (message,) = warnings_on(condition)
    assert message.endswith(advice)
    for amount in (5, 5.5):
        with pytest.raises(EvaluationFailed):
            evaluated(condition, amount)


@pytest.mark.parametrize(
    "condition", ['args.amount > "500"', "'-1.5' <= args.amount", "args.amount < '1_000'"]
)
def test_order_against_a_number_in_quotes_is_told(condition: str) -> None:
    (message,) = warnings_on(condition)
    assert message.endswith("write the number without quotes")
    with pytest.raises(EvaluationFailed):
        evaluated(condition, 5)


@pytest.mark.parametrize(
    "condition",
    [
        "args.amount * 2.0 > 5.0",
        "int(args.amount) % 2 == 1",
        "args.items.size() + 1 > 1",
        "1 + args.items.size() > 1",
        "size(args.items) * 2 > 1",
        "args.items[0] > 4",
        "args.amount > -1",
        "args.amount == args.items[0]",
        "args.items.exists(one, one > 2)",
    ],
)
def test_numbers_that_can_be_counted_with_are_not_told(condition: str) -> None:
    assert warnings_on(condition) == []
    assert evaluated(condition, 5)


@pytest.mark.parametrize("condition", ["args.zip == '12345'", "args.day > '2026-01-01'", "args.a < args.b"])
def test_texts_are_compared_without_a_word(condition: str) -> None:
    assert warnings_on(condition) == []


@pytest.mark.parametrize("condition", ["args.amount in {1: 1, 3: 1}", "proposed.amount in {1.0: true}"])
def test_number_among_the_keys_of_a_map_is_told_since_it_always_fails(condition: str) -> None:
    path = condition.split()[0]
    (message,) = warnings_on(condition)
    assert message.endswith(f"write a list: {path} in [1, 3]")
    if "1.0" not in condition:
        with pytest.raises(EvaluationFailed):
            evaluated(condition, 3)
    assert evaluated("args.amount in [1, 3]", 3)


def test_whole_number_is_written_with_its_digits() -> None:
    assert evaluated("string(args.amount) == '12345678'", 12_345_678)
    assert evaluated("string(int(args.amount)) == '12345678'", 12_345_678)


@pytest.mark.parametrize(
    "condition",
    [
        "string(args.amount) == '12345678'",
        "string(int(args.amount)) == '12345678'",
        "string(args.amount) == args.a",
        "args.amount == '12345678'",
        "args.amount in {'a': 1} || int(args.amount) in {1: 1} || args.a in [1, 3]",
        "'12345678' == args.a",
    ],
)
def test_texts_and_keys_that_may_be_found_are_not_told(condition: str) -> None:
    assert warnings_on(condition) == []


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("args.amount > 9/10", "9/10 is a division of whole numbers, which is 0 in CEL; write 0.9"),
        ("7 / 2 < args.amount", "7/2 is a division of whole numbers, which is 3 in CEL; write 3.5"),
        ("args.amount > (1 / 3)", "1/3 is a division of whole numbers, which is 0 in CEL; write 1.0 / 3.0"),
        ("args.amount > 2.0 && args.amount < 9u/10u", "9/10 is a division"),
        ("args.amount >= -9/10", "write 0.9"),
    ],
)
def test_division_of_whole_numbers_that_leaves_a_remainder_is_refused(condition: str, said: str) -> None:
    rules = f"[{{id: a, match: {{tools: [pay]}}, when: {json.dumps(condition)}, then: hold}}]"
    (problem,) = check(parse_policy(f"policy: p\nrules: {rules}"))

    assert (problem.severity, problem.path) == ("error", "rules[0].when")
    assert said in problem.message


def test_division_of_whole_numbers_in_the_adaptive_block_is_refused() -> None:
    adaptive = "adaptive: {allow_when: trust.lower_bound > 9/10}"
    found = check(parse_policy(f"policy: p\nrules: []\n{adaptive}"))

    assert [one.path for one in found if one.severity == "error"] == ["adaptive.allow_when"]


@pytest.mark.parametrize(
    "condition",
    [
        "args.amount > 10/5",
        "args.amount > 9.0/10.0",
        "int(args.amount) / 9 / 10 == 0",
        "args.items.size() / 2 == 0",
        "args.amount > 0.9",
    ],
)
def test_exact_and_computed_divisions_are_not_told(condition: str) -> None:
    assert warnings_on(condition) == []
    assert evaluated(condition, 5)
