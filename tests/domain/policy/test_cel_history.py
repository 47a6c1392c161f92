"""`novel()` and `tainted()` in conditions."""

from typing import Any

import pytest

from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import DoesNotCompile, compile_expression, evaluate_in_process

HISTORY = {"parts": [], "novel": ["to", "to.address", "a%2Eb"], "tainted": ["l", "\u043a"], "is_whole": True}
ARGS = {"to": {"address": "x"}, "l": ["y"], "a.b": 1, "known": 2, "\u043a": "z"}


def answer(when: str, **history: Any) -> bool:
    expression = compile_expression(when)
    values = {"history": HISTORY | history, "args": ARGS}
    return evaluate_in_process(expression, Bindings(values, 0, expression.shape.reads))


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("novel(args.to)", True),
        ("novel(args.to.address)", True),
        ("novel(args['to'][\"address\"])", True),
        ("novel(args['a.b'])", True),
        ("novel(args.known)", False),
        ("tainted(args.l[0])", True),
        ("tainted(args.to) || novel(args.known)", False),
        ("!tainted(args.to) && novel(args.to)", True),
        ("has(args.absent) && novel(args.absent)", False),
        ("args.l.exists(x, x == 'y' && novel(args.to))", True),
        ('"to" in history.novel', True),
    ],
)
def test_condition_reads_what_is_new_and_what_is_tainted(when: str, expected: bool) -> None:
    assert answer(when) is expected


def test_every_argument_is_new_and_tainted_if_the_call_is_not_looked_at() -> None:
    assert answer("novel(args.known) && tainted(args.known)", is_whole=False)


@pytest.mark.parametrize("when", ["novel(args.absent)", "tainted(args.to.absent)", "novel(args.known.x)"])
def test_argument_that_is_not_there_is_an_error(when: str) -> None:
    with pytest.raises(EvaluationFailed):
        answer(when)


@pytest.mark.parametrize(
    "when",
    [
        "novel(args)",
        "novel(tool)",
        "novel(tool.name)",
        "novel(args.to + 'x')",
        "novel(args.to, args.l)",
        "tainted()",
        "novel(args[tool.name])",
        "args.l.exists(args, novel(args.to))",
        "args.l.exists(history, tainted(args.to))",
        "novel",
        "history",
        "history.foo == 1",
    ],
)
def test_other_forms_are_refused(when: str) -> None:
    with pytest.raises(DoesNotCompile):
        compile_expression(when)


def test_value_of_a_policy_before_may_be_called_history() -> None:
    assert answer("args.l.all(history, history == 'y')")
    assert not answer("args.l.exists(history, history == 'x')")
