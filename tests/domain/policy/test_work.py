"""What is evaluated in place is surely little work: each worst case takes no more than its bound says."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from schemas.linear_patterns import bounded_pattern, bounded_size
from schemas.policy_document import policy_from_value
from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import MAX_COST, CompiledExpression, compile_expression, cost_of, run
from services.domain.policy.cel_work import PROGRAM
from services.domain.policy.compiled import policy_alone
from tests.domain.policy.builders import NOW_MS

UNIT_S = 0.3e-6
# Beside other work, a core's time is worth less; and a first call has something to load.
MARGIN, SOME_S = 5, 0.02
TEXT = "a" * 250_000
VALUES = [0.0] * 15_000


def measured(source: str, arguments: dict[str, Any]) -> tuple[float, float]:
    """The bound of an expression in seconds, and the processor's time that it took."""
    expression: CompiledExpression = compile_expression(source)
    bindings = Bindings({"args": arguments}, NOW_MS, expression.shape.reads)
    bound_s = cost_of(expression, bindings) * UNIT_S
    bindings.context()
    with without_collector():
        began_s = time.thread_time()
        # Of some texts no answer can be given: that takes its time as well.
        with suppress(EvaluationFailed):
            run(expression, bindings)
        return bound_s, time.thread_time() - began_s


@contextmanager
def without_collector() -> Iterator[None]:
    """The collector would walk all that ten thousand tests have left, at the cost of the one that it interrupts."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def many(condition: str, count: int) -> str:
    return " && ".join([condition] * count)


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.s.matches('(a{1,100}){1,10}$')", {"s": "a" * 20_000}),
        ("args.s.matches('(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?(a)?$')", {"s": "ab" * 20_000}),
        ("args.s.matches('[ab]*a[ab]{300}c')", {"s": "a" * 20_000}),
        ("args.s.matches('(.{1,30}.{1,30}){5}c')", {"s": "é" * 20_000}),
        ("args.l.all(x, x == 0.0)", {"l": VALUES}),
        (many("args.l.all(x, x == 0.0)", 20), {"l": VALUES}),
        (f"args.l.all(x, {many('x == 0.0', 50)})", {"l": VALUES}),
        (f"args.l.all(x, x in [{', '.join(['1.0'] * 100)}, 0.0])", {"l": VALUES}),
        (many("!args.s.contains(args.t)", 60), {"s": TEXT, "t": "a" * 50_000 + "b"}),
        (many("args.s.startsWith(args.s)", 60), {"s": TEXT}),
        (many("args.s.endsWith(args.s)", 60), {"s": TEXT}),
        (f"({' + '.join(['args.s'] * 30)}).size() > 0", {"s": TEXT}),
        (many("args.l == args.m", 20), {"l": VALUES, "m": VALUES}),
        (many("args.l == args.m", 20), {name: {str(n): n for n in range(5_000)} for name in "lm"}),
        (many("double(args.s) > 0.0", 60), {"s": "9" * 240_000 + "e-90000"}),
        ("args.l.all(x, double(args.s) > 0.0)", {"l": [0.0] * 500, "s": "9" * 240_000 + "e-90000"}),
        (many("int(args.s) > 0", 60), {"s": "9" * 250_000}),
        (many("duration(args.s) > duration('1s')", 10), {"s": "1h" * 120_000}),
        (many("timestamp(args.s) < now", 10), {"s": "2026-01-01T00:00:00Z" + "0" * 240_000}),
        (many("real_path(args.s) != '/x'", 50), {"s": "/" + "a/../" * 800}),
        ("args.l.all(x, url_host(x) != 'x')", {"l": [f"http://{'日本語' * 6}{n}.com/" for n in range(50)]}),
        ("sql_kind(args.s) == 'select'", {"s": "select " + "1+" * 500 + "1"}),
        ("sql_kind(args.s, 'postgres') == 'select'", {"s": "select a" + "[1]" * 200}),
        ("sql_kind(args.s, 'bigquery') == 'select'", {"s": "(select * from " * 25 + "t" + ")" * 25}),
        # A list or map is copied each time that it is named.
        ("args.l.all(x, args.l == 1.0 || true)", {"l": ["a"] * 1_000}),
        ("args.l.all(x, args.m[x] == 1.0 || true)", {"l": ["1"] * 500, "m": {str(n): 1 for n in range(500)}}),
        ("args.l.all(x, args.l[args.l] == 'a' || true)", {"l": ["a"] * 1_000}),
        ("args.l.all(x, args.m.none == 1.0 || true)", {"l": [1] * 500, "m": {str(n): 1 for n in range(500)}}),
        ("args.l.all(x, size(args.m) > 0)", {"l": [1] * 500, "m": {str(n): 1 for n in range(500)}}),
        ("args.l.all(x, args.s != 'a')", {"l": [1] * 1_000, "s": TEXT}),
        ("args.l.map(x, args.s).size() > 0", {"l": [1] * 100, "s": "a" * 10_000}),
        ("args.l.map(x, args.l).size() > 0", {"l": [1] * 60}),
        ("args.l.all(x, x.matches('a') || true)", {"l": [0.0] * 300}),
        # Whether it is finite is asked of all that is computed, and of what may be a list or a text.
        (f"args.l.all(x, {many('x / 2.0 + 1.0 < 5.0', 20)})", {"l": VALUES[:1_000]}),
        (f"args.l.all(x, {many('x / 0.0 < 5.0', 20)} || true)", {"l": VALUES[:1_000]}),
        (many("args.l + args.m != [1.0]", 10), {"l": VALUES, "m": VALUES}),
        (many("args.l + args.m != [1.0]", 10), {name: [{"a": 1, "b": 2}] * 1_000 for name in "lm"}),
        (many("args.s + args.s != 'a'", 20), {"s": TEXT}),
        ("args.l.all(x, x + x != [0.0])", {"l": [[0.0] * 50] * 200}),
        ("args.l.all(x, args.m + x != [0.0])", {"l": [[0.0] * 5] * 100, "m": [0.0] * 500}),
        ("args.l.all(x, args.l.filter(y, true) + x != [0.0])", {"l": [[0.0] * 5] * 50}),
        # Of what is added, and of what has a sign, the kind is asked for.
        (many("args.l + args.m + args.l != [1.0] || true", 10), {"l": VALUES, "m": {str(n): [n] for n in range(9)}}),
        (many("-args.m < 0.0 || true", 60), {"m": {str(n): {"a": 1} for n in range(2_000)}}),
        (many("-args.l < 0.0 || true", 60), {"l": VALUES}),
        ("args.l.all(x, -x <= 0.0)", {"l": VALUES[:1_000]}),
        ("args.l.all(x, - - -x <= 0.0 || true)", {"l": [[0.0] * 50] * 200}),
        ("-(" * 30 + "args.n" + ")" * 30 + " != 0.5", {"n": 2.5}),
        ("args.l + (" * 20 + "args.l" + ")" * 20 + " != [1.0]", {"l": [0.0] * 200}),
        # Characters are counted, of texts that are decoded first.
        (many("size(args.s) > 0", 60), {"s": "é" * 100_000}),
        (many("size(args.l.map(x, x)[0]) > 0", 20), {"l": ["é" * 50_000]}),
        (many("size(args.m) > 0", 60), {"m": {str(n): {"a": 1} for n in range(2_000)}}),
        (many("size(args.m[args.k]) > 0", 20), {"k": "a", "m": {"a": {str(n): 1 for n in range(5_000)}}}),
        ("args.l.all(x, x.size() > 0 || true)", {"l": [0.0] * 1_000}),
        (many("duration(args.s) > duration('1s') || true", 60), {"s": "1h" * 127}),
        ("args.l.all(x, duration(x) > duration('1s') || true)", {"l": ["nan"] * 300}),
        ("args.l.all(x, duration(args.m) > now || true)", {"l": [1] * 50, "m": {str(n): 1 for n in range(500)}}),
        ("args.l.all(x, real_path(x) == 'a' || true)", {"l": [0.0] * 300}),
        # What `string()`, `timestamp()` and `int()` do depends on the kind of what they are given.
        (many("string(args.n) != '1'", 60), {"n": 1e-300}),
        (many("string(args.s) != '1'", 60), {"s": "é" * 100_000}),
        (many("string(args.l) != '1' || true", 60), {"l": VALUES}),
        (many("string(args.m) != '1' || true", 60), {"m": {str(n): {"a": 1} for n in range(2_000)}}),
        (many("string(args.s + args.s) != '1'", 20), {"s": TEXT}),
        (many("string(args.l + args.l) != '1' || true", 10), {"l": VALUES}),
        (many("string([args.l, args.l][0]) != '1' || true", 10), {"l": VALUES}),
        (many("string(now - timestamp(args.t)) != '1'", 30), {"t": "2026-01-01T00:00:00Z"}),
        ("args.l.all(x, string(now - duration(string(x) + 's')) != '1')", {"l": VALUES[:500]}),
        ("args.l.all(x, string(x) != '1')", {"l": [1e-300] * 1_000}),
        ("args.l.all(x, string(x) != '1' || true)", {"l": [{str(n): 1 for n in range(50)}] * 100}),
        ("args.l.map(x, string(now)).size() > 0", {"l": VALUES[:300]}),
        ("string(" * 30 + "args.n" + ")" * 30 + " != '1'", {"n": 1e-300}),
        (many("timestamp(args.s) < now || true", 60), {"s": "2026-01-01T00:00:00." + "é" * 50_000}),
        (many("timestamp(args.m) < now || true", 60), {"m": {str(n): {"a": 1} for n in range(2_000)}}),
        ("args.l.all(x, timestamp(x) < now)", {"l": ["2025-01-01T00:00:00.123456789+01:00"] * 1_000}),
        ("args.l.all(x, timestamp(int(x)) < now || true)", {"l": [1e17] * 1_000}),
        (many("int(args.m.a + args.m.a) > 0 && now > now || true", 20), {"m": {"a": VALUES}}),
        ("args.l.all(x, int(now) > 0)", {"l": VALUES[:1_000]}),
        ("args.l.all(x, now.getHours('America/New_York') < 25)", {"l": VALUES[:1_000]}),
        ("args.l.all(x, timestamp(x).getDayOfYear('Europe/Berlin') > -1)", {"l": ["2026-07-01T00:00:00Z"] * 300}),
        ("args.l.all(x, x.getHours('UTC') > 1 || true)", {"l": [[0.0] * 50] * 100}),
        (many("args.m.getHours('UTC') > 1 || true", 60), {"m": {str(n): {"a": 1} for n in range(2_000)}}),
        (many("args.now.getHours('UTC') > 1 || true", 60), {"now": {str(n): {"a": 1} for n in range(2_000)}}),
        (many("now.getHours('Mars/Olympus') > 1 || true", 50), {}),
    ],
)  # fmt: skip
def test_case_30_worst_work_of_a_large_call_is_within_its_bound(
    source: str, arguments: dict[str, Any]
) -> None:
    run_once = compile_expression("sql_kind('select 1') == 'select'")
    assert run(run_once, Bindings({}, NOW_MS))

    bound_s, took_s = measured(source, arguments)

    assert took_s < bound_s * MARGIN + SOME_S, (
        f"{took_s * 1000:.0f} ms, and {bound_s * 1000:.1f} ms are counted"
    )


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.s.matches('(a{1,100}){1,10}$')", {"s": "a" * 1_000}),
        (many("args.l.all(x, x == 0.0)", 60), {"l": VALUES}),
        (many("duration(args.s) > duration('1s')", 30), {"s": "1h" * 120_000}),
        ("args.l.all(x, double(args.s) > 0.0)", {"l": [0.0] * 10_000, "s": "9" * 200_000}),
        ("sql_kind(args.s, 'postgres') == 'select'", {"s": "select a" + "[1]" * 3_000}),
        ("args.l.all(x, string(x) == '0')", {"l": VALUES}),
        ("args.l.all(x, now.getHours('Europe/Berlin') > 1)", {"l": VALUES}),
        ("args.l.all(x, args.l == 1.0 || true)", {"l": ["a"] * 2_000}),
        # Each of the maps doubles what the one before it made: sixty of them are an exabyte.
        ("['a']" + ".map(x, x + x)" * 60 + ".size() > 0", {}),
        ("[args.s]" + ".map(x, [x, x])" * 60 + " == [args.s]", {"s": "a"}),
        ("[args.l, args.l].exists(x, [x, x].exists(y, y == x))", {"l": VALUES}),
    ],
)  # fmt: skip
def test_case_30_work_that_keeps_others_waiting_is_not_done_in_place(
    source: str, arguments: dict[str, Any]
) -> None:
    expression = compile_expression(source)

    assert cost_of(expression, Bindings({"args": arguments}, NOW_MS, expression.shape.reads)) > MAX_COST


@pytest.mark.parametrize(
    "pattern", ["(a{1,100}){1,10}$", "(?:a?){300}$", "(?:a*){1,30}(?:.*a){30}$", "a{900}b"]
)
def test_case_31_pattern_takes_no_more_than_its_instructions_for_each_byte(pattern: str) -> None:
    text = "a" * 20_000
    bounded_pattern(pattern).search("a")

    began_s = time.thread_time()
    bounded_pattern(pattern).search(text)

    assert (
        time.thread_time() - began_s < len(text) * bounded_size(pattern) * PROGRAM * UNIT_S * MARGIN + SOME_S
    )


def test_case_31_groups_of_a_pattern_do_not_multiply_its_work() -> None:
    """Which group took which part is never asked: following them took seven times as long."""
    assert bounded_pattern("(a)?" * 300 + "$").groups == 0


def test_case_31_pattern_over_the_bound_of_publishing_is_still_read_from_the_log() -> None:
    """It is no part of what makes a published policy readable; on a long text its condition is not evaluated here."""
    when = "args.s.matches('^(.{1,30} ){30}$')"
    document = policy_from_value({"policy": "p", "rules": [{"id": "a", "when": when, "then": "allow"}]})

    assert policy_alone(document, "acme").policies
    expression = compile_expression(when)
    for length, in_place in ((20, True), (50_000, False)):
        bindings = Bindings({"args": {"s": "a" * length}}, NOW_MS, expression.shape.reads)
        assert (cost_of(expression, bindings) <= MAX_COST) is in_place
