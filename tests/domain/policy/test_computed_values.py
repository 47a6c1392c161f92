"""What a condition computes: a number that is not finite, a text's length and a duration are answered as CEL says."""

import pytest

from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.cel_program import program_of
from services.domain.policy.cel_tokens import tokenize
from tests.domain.policy.builders import NOW_MS


def evaluate(source: str, **arguments: object) -> bool:
    expression = compile_expression(source)
    return evaluate_in_process(expression, Bindings({"args": arguments}, NOW_MS, expression.shape.reads))


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.a / args.b <= 10.0", {"a": -1, "b": 0}),
        ("args.a / args.b <= 10.0", {"a": 1, "b": -5e-324}),
        ("!(args.a / args.b > 10.0)", {"a": -1, "b": 0}),
        ("args.a != args.b / args.c", {"a": 1, "b": 0, "c": 0}),
        ("args.a < args.b / args.c", {"a": 500_000, "b": 1, "c": 0}),
        ("args.a / args.b / args.c <= 10.0", {"a": -1, "b": 0, "c": 3}),
        ("1.0 / (args.a / args.b) <= 10.0", {"a": 1, "b": 0}),
        ("args.a * 10.0 >= 1.0", {"a": 1e308}),
        ("args.a + args.b >= 1.0", {"a": 1e308, "b": 1e308}),
        ("args.a - args.b * args.c < 0.0", {"a": 1, "b": 1e200, "c": 1e200}),
        ("double(args.s) <= 10.0", {"s": "-inf"}),
        ("double(args.s) <= 10.0", {"s": "-Infinity"}),
        ("double(args.s) <= 10.0", {"s": "-1e400"}),
        ("double(args.s) != 10.0", {"s": "nan"}),
        ("1.0 / double(args.s) <= 10.0", {"s": "inf"}),
        ("args.l.all(x, x / args.b <= 10.0)", {"l": [-1, -2], "b": 0}),
        ("args.l.map(x, x / args.b)[0] <= 10.0", {"l": [-1], "b": 0}),
        ("(args.a < 1.0 ? args.a / args.b : 1.0) <= 10.0", {"a": -5, "b": 0}),
        ("{'k': args.a / args.b}.k <= 10.0", {"a": -1, "b": 0}),
        ("args.a in [args.a, args.a / args.b]", {"a": 1, "b": 0}),
        ("string(args.a / args.b) == '-inf'", {"a": -1, "b": 0}),
    ],
)
def test_case_21_answer_from_a_number_that_is_not_finite_is_an_error(
    source: str, arguments: dict[str, object]
) -> None:
    with pytest.raises(EvaluationFailed, match="not finite"):
        evaluate(source, **arguments)


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.a / args.b <= 10.0", {"a": -1, "b": 4}),
        ("args.b > 0.0 && args.a / args.b <= 10.0 || args.b == 0.0", {"a": -1, "b": 0}),
        ("- args.a - -args.b == 1.0", {"a": 1, "b": 2}),
        ("uint(args.a) * uint(args.b) + 1u == 3u", {"a": 1, "b": 2}),
        ("int(args.a) * int(args.b) + 1 == 3", {"a": 1, "b": 2}),
        ("int(args.a) % 2 == -1", {"a": -3}),
        ("args.a * -0.0 == 0.0", {"a": 3}),
        ("now - timestamp(args.t) > duration('1h')", {"t": "2020-01-01T00:00:00Z"}),
        ("args.s + args.t == 'xy'", {"s": "x", "t": "y"}),
        ("args.l + args.m == [1.0, 2.0]", {"l": [1], "m": [2]}),
        ("args.l.all(double, double + 1.0 < 5.0)", {"l": [1, 2]}),
        ("args.l.all(v, v * 2.0 + v < 7.0)", {"l": [1, 2]}),
    ],
)
def test_computed_value_keeps_its_kind_and_order(source: str, arguments: dict[str, object]) -> None:
    assert evaluate(source, **arguments) is True


def test_brackets_and_sums_at_their_bounds_still_compile() -> None:
    deep = "args.a"
    for _ in range(31):
        deep = f"({deep} / 1.5 + double(1))"

    assert evaluate(f"{deep} < 5.0", a=2) is True
    assert evaluate("+".join(["args.a"] * 60) + " == 120.0", a=2) is True


@pytest.mark.parametrize("text", ["😀😀😀", "ééé", "abc", "日本語"])
@pytest.mark.parametrize(
    "source",
    [
        "size(args.s) == 3",
        "args.s.size() == 3",
        "size(args['s']) == 3",
        "args.l[0].size() == 3",
        "args.l.all(x, size(x) == 3)",
        "args.l.all(x, x.size() == 3)",
        "(args.s + args.s).size() == 6",
        "size(args.s + args.s) == 6",
        "args.s.matches('^.{3}$')",
    ],
)
def test_case_21_size_counts_the_characters_of_a_text(source: str, text: str) -> None:
    assert evaluate(source, s=text, l=[text]) is True


def test_size_counts_elements_keys_and_bytes() -> None:
    assert evaluate("size(args.l) == 2 && args.l.size() == 2 && args.l.map(x, x).size() == 2", l=["é", 1])
    assert evaluate("size(args.m) == 1 && args.m.size() == 1 && size(args) == 1", m={"a": "é"})
    assert evaluate(
        "size(args.l.filter(x, x == 1.0)) == 1 && size([args.l.map(x, x)[0] + 'a']) == 1", l=["é", 1]
    )
    assert evaluate("size('a' in args.l ? args.m.a : args.l.map(x, x)[0]) == 1", l=["é"], m={"a": "b"})
    assert evaluate("size(bytes(args.s)) == 2 && bytes(args.s).size() == 2", s="é")


def test_comparison_and_search_of_texts_follow_their_characters() -> None:
    """UTF-8 keeps the order of characters, and no character begins within another."""
    assert evaluate("args.a > args.b && args.a.startsWith('😀') && args.a.endsWith('x')", a="😀x", b="\uffff")


@pytest.mark.parametrize(
    "text",
    ["nans", "infs", "-infs", "1s 99h", "1h-5m", "-1h-1m", "1e3s", "99999999999h", "9223372036854775808ns", "1"],
)  # fmt: skip
def test_case_21_text_that_is_no_duration_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationFailed, match=r"duration\(\) was given a text that it cannot read, args.s"):
        evaluate("duration(args.s) <= duration('10s')", s=text)


@pytest.mark.parametrize("text", ["1h30m", "90m", "+90m", "1.5h", "5400000ms", "5400000000us", "60m30m"])
def test_duration_is_read_as_cel_writes_it(text: str) -> None:
    assert evaluate("duration(args.s) == duration('5400s')", s=text) is True


@pytest.mark.parametrize(
    ("source", "value", "said"),
    [
        ("int(args.a) <= 10", True, "int() was given a truth value, args.a; it takes numbers and texts"),
        ("uint(args.a) <= 10u", None, "uint() was given null, args.a; it takes numbers and texts"),
        ("double(args.a) <= 1.0", [1], "double() was given a list, args.a; it takes numbers and texts"),
        ("string(args.a) == '1'", {}, "string() was given a map, args.a; it takes texts, numbers,"),
        ("timestamp(args.a) < now", 5, "timestamp() was given a number, args.a; it takes texts such as"),
        ("duration(args.a) < duration('1s')", 5, "duration() was given a number, args.a; it takes texts"),
        ("size(args.a) <= 3", 5, "size() was given a number, args.a; it takes texts, lists, maps and bytes"),
        ("args.a.contains('x')", 5, "contains() was given a number, args.a; it takes texts"),
        ("'x'.startsWith(args.a)", 5, "startsWith() was given a number, args.a; it takes texts"),
        ("args.a.all(x, int(x) > 1)", [None], "int() was given what it does not take; it takes numbers"),
        ("size(args.a[0] - 1.0) > 1", [5], "size() takes texts, lists, maps and bytes"),
        ("args.a.getHours() == 1", 5, "getHours() was given a value of a kind that it does not take"),
    ],
)
def test_value_of_a_wrong_kind_is_told_with_the_function(source: str, value: object, said: str) -> None:
    with pytest.raises(EvaluationFailed) as failure:
        evaluate(source, a=value)

    assert str(failure.value).startswith(said)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("int(args.a) <= 10", 1e19),
        ("int(args.a) <= 10", -1e300),
        ("int(args.a) <= 10", "1e3"),
        ("int(args.a) * 9223372036854775807 > 0", 3),
        ("uint(args.a) <= 10u", -1),
        ("int(args.a) / 0 <= 1", 1),
        ("int(args.a) % 0 <= 1", 1),
        ("timestamp(args.a) < now", "10000-01-01T00:00:00Z"),
    ],
)
def test_value_out_of_range_is_an_error(source: str, value: object) -> None:
    with pytest.raises(EvaluationFailed):
        evaluate(source, a=value)


@pytest.mark.parametrize(
    "source", ["args.a > 1.0 && args.b == 'x'", "args.s + 'a' == 'ba'", "int(args.n) + 1 > 2"]
)
def test_expression_without_doubles_to_check_runs_as_it_stands(source: str) -> None:
    assert program_of(tokenize(source)) is None
