"""Every operator and function of a condition with values of every type: where CEL has no overload, it is an error.

The overloads are those of the language's definition (the list of standard definitions in cel-spec), with
what docs/policy.md names as different.
"""

from itertools import product

import pytest

from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.cel_times import ACCESSORS
from tests.domain.policy.builders import NOW_MS

ARGUMENTS = {
    "bool": True,
    "double": 2.5,
    "string": "ab",
    "list": [1.5, "x", None],
    "map": {"ab": 1},
    "nothing": None,
    "number": 1,
    "time": "2026-01-05T12:00:00Z",
    "span": "1h",
}
# How a value of each type comes from a call.
VALUES = {
    **{kind: f"args.{kind}" for kind in ("bool", "double", "string", "list", "map")},
    "null": "args.nothing",
    "int": "int(args.number)",
    "uint": "uint(args.number)",
    "bytes": "bytes(args.string)",
    "timestamp": "timestamp(args.time)",
    "duration": "duration(args.span)",
    "type": "type(args.string)",
}
NUMBERS = ("int", "uint", "double")
NUMERIC = {(kind, kind) for kind in NUMBERS}
TIMED = {("timestamp", "duration"), ("duration", "duration")}
ORDERED = {(kind, kind) for kind in ("bool", "string", "bytes", "timestamp", "duration")} | set(
    product(NUMBERS, NUMBERS)
)
JOINED = {(kind, kind) for kind in ("string", "bytes", "list")}
EVERY = set(product(VALUES, VALUES))
BINARY: dict[str, set[tuple[str, str]]] = {
    # Of these CEL has (duration, timestamp) too.
    "+": NUMERIC | JOINED | TIMED,
    "-": NUMERIC | TIMED | {("timestamp", "timestamp")},
    "*": NUMERIC,
    "/": NUMERIC,
    "%": {("int", "int"), ("uint", "uint")},
    **dict.fromkeys(("==", "!="), EVERY),
    **dict.fromkeys(("<", "<=", ">", ">="), ORDERED),
    # What can be no key of a map is in none to CEL, and an error here.
    "in": {(kind, "list") for kind in VALUES} | {(kind, "map") for kind in ("bool", "int", "uint", "string")},
}
UNARY = {"-": {"int", "double"}, "!": {"bool"}}
# Types are names to `size()` and `matches()` (docs/policy.md).
FUNCTIONS = {
    "size": {"string", "bytes", "list", "map", "type"},
    "int": {"int", "uint", "double", "string", "timestamp"},
    "uint": {"int", "uint", "double", "string"},
    "double": {"int", "uint", "double", "string"},
    "string": {"bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"},
    "bytes": {"string", "bytes"},
    "timestamp": {"int", "string", "timestamp"},
    "duration": {"string"},
    "type": set(VALUES),
    "dyn": set(VALUES),
}
# A text that each of these functions can read.
READABLE = {"int": "12", "uint": "12", "double": "12", "timestamp": ARGUMENTS["time"], "duration": "1h"}
OF_DURATIONS = {"getHours", "getMinutes", "getSeconds", "getMilliseconds"}


def answers(source: str, **other: object) -> bool:
    """Whether an expression has a value; one that has none is an error."""
    condition = compile_expression(f"[{source}].size() == 1")
    bindings = Bindings({"args": {**ARGUMENTS, **other}}, NOW_MS, condition.shape.reads)
    try:
        return evaluate_in_process(condition, bindings)
    except EvaluationFailed:
        return False


@pytest.mark.parametrize("operator", UNARY)
@pytest.mark.parametrize("kind", VALUES)
def test_operator_of_one_value_takes_the_types_that_cel_says(operator: str, kind: str) -> None:
    for source in (
        f"{operator}{VALUES[kind]}",
        f"{operator}({VALUES[kind]})",
        f"{operator}[{VALUES[kind]}][0]",
    ):
        assert answers(source) == (kind in UNARY[operator]), source


@pytest.mark.parametrize("operator", BINARY)
@pytest.mark.parametrize("left", VALUES)
def test_operator_of_two_values_takes_the_types_that_cel_says(operator: str, left: str) -> None:
    for right in VALUES:
        a, b = VALUES[left], VALUES[right]
        for source in (f"{a} {operator} {b}", f"({a}) {operator} [{b}][0]"):
            assert answers(source) == ((left, right) in BINARY[operator]), source


@pytest.mark.parametrize("left", VALUES)
def test_sum_of_three_takes_the_types_that_cel_says(left: str) -> None:
    for middle, right in EVERY:
        known = (left, middle) in BINARY["+"]
        both = left if left == middle else "timestamp"
        source = " + ".join(VALUES[kind] for kind in (left, middle, right))
        assert answers(source) == (known and (both, right) in BINARY["+"]), source


@pytest.mark.parametrize("kind", VALUES)
def test_words_of_logic_take_truth_values(kind: str) -> None:
    """What decides absorbs an error of the other side, as in CEL; what does not decide needs a truth value."""
    value = VALUES[kind]
    for source in (f"args.bool && {value}", f"{value} && args.bool", f"{value} ? 1 : 2"):
        assert answers(source) == (kind == "bool"), source
    for source in (f"!args.bool || {value}", f"{value} || !args.bool"):
        assert answers(source) == (kind == "bool"), source
    assert answers(f"args.bool || {value}")
    assert answers(f"!args.bool && {value}")


@pytest.mark.parametrize("kind", VALUES)
def test_index_takes_the_types_that_cel_says(kind: str) -> None:
    for index in VALUES:
        source = f"{VALUES[kind]}[{VALUES[index]}]"
        assert answers(source) == ((kind, index) in {("list", "int"), ("list", "uint"), ("map", "string")}), (
            source
        )
    assert not answers(f"{VALUES[kind]}.other")
    for macro in ("all(x, true)", "exists(x, true)", "exists_one(x, true)", "map(x, x)", "filter(x, true)"):
        assert answers(f"{VALUES[kind]}.{macro}") == (kind in ("list", "map")), macro


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", VALUES)
def test_function_takes_the_types_that_cel_says(function: str, kind: str) -> None:
    text = {"string": READABLE[function]} if kind == "string" and function in READABLE else {}

    assert answers(f"{function}({VALUES[kind]})", **text) == (kind in FUNCTIONS[function])
    if function == "size":
        assert answers(f"{VALUES[kind]}.size()") == (kind in FUNCTIONS[function])


@pytest.mark.parametrize("kind", VALUES)
def test_method_takes_the_types_that_cel_says(kind: str) -> None:
    for method, given in product(("contains", "startsWith", "endsWith"), VALUES):
        source = f"{VALUES[kind]}.{method}({VALUES[given]})"
        assert answers(source) == (kind == given == "string"), source
    assert answers(f"{VALUES[kind]}.matches('a')") == (kind in ("string", "type"))
    for accessor in sorted(ACCESSORS):
        of_it = kind == "timestamp" or (kind == "duration" and accessor in OF_DURATIONS)
        assert answers(f"{VALUES[kind]}.{accessor}()") == of_it, accessor
        assert answers(f"{VALUES[kind]}.{accessor}('UTC')") == (kind == "timestamp"), accessor
    for own in ("url_host", "real_path", "sql_kind"):
        assert not answers(f"{own}({VALUES[kind]})")


def test_truth_value_is_no_number_whatever_the_sign_is_before() -> None:
    condition = compile_expression("args.debit == -args.credit")
    bindings = Bindings({"args": {"debit": True, "credit": False}}, NOW_MS, condition.shape.reads)

    with pytest.raises(EvaluationFailed, match="`-` was given a truth value; it takes numbers"):
        evaluate_in_process(condition, bindings)
    for source in (
        "--args.bool",
        "-(-args.bool)",
        "-(args.bool)",
        "1.0 - -args.bool",
        "[-args.bool]",
    ):
        assert not answers(source), source
    assert answers("args.double - -args.double * -(args.double + args.double)")


def test_keys_of_a_map_are_not_added_to_a_list() -> None:
    condition = compile_expression("(args.to + args.cc).all(who, who in ['ann', 'ben'])")
    for cc, said in ((["ben"], ""), ({"ben": 1}, "`[+]` was given a map")):
        bindings = Bindings({"args": {"to": ["ann"], "cc": cc}}, NOW_MS, condition.shape.reads)
        if not said:
            assert evaluate_in_process(condition, bindings) is True
        else:
            with pytest.raises(EvaluationFailed, match=said):
                evaluate_in_process(condition, bindings)


def test_signs_and_sums_within_each_other_keep_their_value() -> None:
    signs = sums = "args.double"
    for _ in range(5):
        signs, sums = f"-({signs})", f"args.double + ({sums})"

    assert answers(f"({sums} == 15.0 && {signs} == -2.5 ? [1] : [])[0]")
