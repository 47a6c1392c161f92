"""What `string()` writes is CEL's own text, of every kind that it takes."""

import math
import random
import struct

import pytest

from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.cel_texts import double_text
from tests.domain.policy.builders import NOW_MS


def evaluate(source: str, **arguments: object) -> bool:
    expression = compile_expression(source)
    return evaluate_in_process(expression, Bindings({"args": arguments}, NOW_MS, expression.shape.reads))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (500.0, "500"),
        (98.7, "98.7"),
        (0, "0"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (999_999, "999999"),
        (1_000_000, "1000000"),
        (-1_000_000, "-1000000"),
        (1_234_567, "1234567"),
        (9_007_199_254_740_991, "9007199254740991"),
        (-12_345_678.25, "-12345678.25"),
        (1e21, "1" + "0" * 21),
        (1.7976931348623157e308, "17976931348623157" + "0" * 292),
        (0.0001, "0.0001"),
        (0.00012345, "0.00012345"),
        (0.00001, "0.00001"),
        (1e-7, "0.0000001"),
        (5e-324, "0." + "0" * 323 + "5"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ("Straße 日本 🎉", "Straße 日本 🎉"),
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        "string(args.v) == args.text",
        "args.l.all(x, string(x) == args.text)",
        "args.l.all(v, string(v) == args.text) && args.l.all(type, string(type) == args.text)",
        "string(args.l.map(x, x)[0]) == args.text",
        "args.text == string(string(args.v))",
    ],
)
def test_case_21_value_of_a_call_is_written_as_cel_writes_it(source: str, value: object, text: str) -> None:
    assert evaluate(source, v=value, l=[value], text=text) is True


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("1000000", "1000000"),
        ("-5", "-5"),
        ("5u", "5"),
        ("9223372036854775807", "9223372036854775807"),
        ("1e6", "1000000"),
        ("-2.50", "-2.5"),
        ("int(args.n)", "12345678"),
        ("uint(args.n)", "12345678"),
        ("args.n", "12345678"),
        ("args.n > 1.0", "true"),
        ("bytes('日本')", "日本"),
        ("'a' + 'b'", "ab"),
        ("now", "2026-01-05T12:00:00Z"),
        ("timestamp('2026-01-05T12:00:00.100Z')", "2026-01-05T12:00:00.1Z"),
        ("timestamp('2026-01-05T12:00:00.123456789+01:00')", "2026-01-05T11:00:00.123456789Z"),
        ("timestamp(args.t)", "2026-01-05T12:00:00.123456789Z"),
        ("timestamp('0001-01-01T00:00:00Z')", "0001-01-01T00:00:00Z"),
        ("[timestamp(args.t)].map(t, t)[0]", "2026-01-05T12:00:00.123456789Z"),
        ("duration('90m')", "5400s"),
        ("duration('0')", "0s"),
        ("duration('1ns')", "0.000000001s"),
        ("duration('-1ns')", "-0.000000001s"),
        ("duration('-1500us')", "-0.0015s"),
        ("duration('-1h1.5s')", "-3601.5s"),
        ("duration('1h0.000000001s')", "3600.000000001s"),
        ("duration('2555555h')", "9199998000s"),
        ("duration('-2555555h')", "-9199998000s"),
        ("timestamp(args.t) - timestamp('2026-01-05T12:00:01Z')", "-0.876543211s"),
    ],
)
def test_case_21_computed_value_is_written_as_cel_writes_it(source: str, text: str) -> None:
    arguments = {"n": 12_345_678, "t": "2026-01-05T12:00:00.123456789Z", "text": text}

    assert evaluate(f"string({source}) == args.text", **arguments) is True
    assert evaluate(f"[{source}].all(args2, string(args2) == args.text)", **arguments) is True


@pytest.mark.parametrize(
    "source",
    [
        "string(args.o)",
        "string(args.l)",
        "string(args.z)",
        "string(type(args.l))",
        "string([int, args.z][0])",
        "string(args.l, 1)",
    ],
)
def test_kind_without_a_text_is_an_error(source: str) -> None:
    with pytest.raises(
        EvaluationFailed, match=r"^string\(\) was given .* it takes texts, numbers, truth values, bytes"
    ):
        evaluate(f"{source} == 'x'", o={}, l=[1], z=None)


def test_span_longer_than_a_duration_can_be_is_an_error() -> None:
    """The binding would write one that is 584 years shorter."""
    with pytest.raises(EvaluationFailed, match=r"string\(\) was given a duration of more than 292 years"):
        evaluate("string(now - timestamp('0001-01-01T00:00:00Z')) != args.s", s="")


def test_error_within_is_absorbed_as_any_of_cel() -> None:
    assert evaluate("string(args.none) == 'x' || true") is True
    assert (
        evaluate("string(args.l) == 'x' || timestamp(args.l) < now || now.getHours('X') > 1 || true", l=[1])
        is True
    )


def test_deep_nesting_still_compiles() -> None:
    source = "args.n"
    for name in ("int", "string") * 15:
        source = f"{name}({source})"

    assert evaluate(f"{source} == '7' && int(now) > 0", n=7) is True


def test_text_of_a_double_reads_as_the_same_double() -> None:
    chosen = random.Random(7)
    for _ in range(2_000):
        value = struct.unpack("d", chosen.randbytes(8))[0]
        if math.isfinite(value):
            assert float(double_text(value)) == value
