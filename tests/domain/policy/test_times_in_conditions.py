"""Times of a condition: what a time is, what a clock shows in a zone, and how times count in seconds."""

import json

import pytest

from services.domain.policy import Bindings, EvaluationFailed
from services.domain.policy.cel import compile_expression, evaluate_in_process
from services.domain.policy.cel_program import program_of
from services.domain.policy.cel_tokens import tokenize
from tests.domain.policy.builders import NOW_MS
from tests.policy_documents import check, parse_policy


def evaluate(source: str, now_ms: int = NOW_MS, **arguments: object) -> bool:
    expression = compile_expression(source)
    return evaluate_in_process(expression, Bindings({"args": arguments}, now_ms, expression.shape.reads))


def messages_on(condition: str) -> list[str]:
    rules = f"[{{id: a, match: {{tools: [pay]}}, when: {json.dumps(condition)}, then: hold}}]"
    found = check(parse_policy(f"policy: p\nrules: {rules}"))
    assert {(problem.path, problem.severity) for problem in found} <= {("rules[0].when", "error")}
    return [problem.message for problem in found]


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05 12:00:00Z",
        "2026-01-05t12:00:00Z",
        "2026-01-05T12:00:00z",
        "2026-06-30T23:59:60Z",
        "2026-01-05T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-01-05T12:00:00",
        "2026-01-05T12:00Z",
        "2026-01-05T12:00:00+24:00",
        "2026-01-05T12:00:00+00:60",
        "2026-01-05T12:00:00+0100",
        "2026-01-05T12:00:00.Z",
        "2026-01-05T12:00:00,5Z",
        "2026-01-05",
        " 2026-01-05T12:00:00Z",
        "2026-01-05T12:00:00Z\n",
        "2026-01-05T12:00:00Z" + "0" * 1_000,
        "\u0662026-01-05T12:00:00Z",
        "",
    ],
)
@pytest.mark.parametrize("source", ["timestamp(args.t) != now", "[args.t].all(t, timestamp(t) != now)"])
def test_case_21_text_that_is_no_time_is_an_error(source: str, text: str) -> None:
    with pytest.raises(EvaluationFailed, match=r"timestamp\(\) was given"):
        evaluate(source, t=text)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-05T12:00:00Z", "2026-01-05T12:00:00Z"),
        ("2026-01-05T12:00:00.000Z", "2026-01-05T12:00:00Z"),
        ("2026-01-05T14:30:00+02:30", "2026-01-05T12:00:00Z"),
        ("2026-01-05T00:00:00-12:00", "2026-01-05T12:00:00Z"),
        ("2026-01-05T12:00:00-00:00", "2026-01-05T12:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ("2026-01-05T12:00:00.1234567899Z", "2026-01-05T12:00:00.123456789Z"),
    ],
)
def test_time_is_read_as_cel_writes_it(text: str, utc: str) -> None:
    assert evaluate(f"timestamp(args.t) == timestamp('{utc}')", t=text) is True
    assert evaluate(f"timestamp('{text}') == timestamp(args.t)", t=utc) is True
    assert evaluate("timestamp(timestamp(args.t)) == timestamp(args.t)", t=text) is True


def test_time_is_made_of_whole_seconds_and_counts_as_them() -> None:
    assert evaluate("timestamp(0) == timestamp('1970-01-01T00:00:00Z') && timestamp(now) == now") is True
    assert evaluate("timestamp(int(args.n)) == timestamp(3) && int(timestamp(-1)) == -1", n=3) is True
    assert evaluate("int(timestamp(args.t)) == 1767614400", t="2026-01-05T12:00:00.999Z") is True
    assert evaluate("int(timestamp(args.t)) == -2", t="1969-12-31T23:59:58.987Z") is True
    assert evaluate(f"int(now) == {NOW_MS // 1000} && int(args.n) % 2 == 1", n=3) is True
    assert evaluate("timestamp(253402300799) > now && int(now - duration('1s')) + 1 == int(now)") is True


@pytest.mark.parametrize(
    "source",
    [
        "timestamp(args.n) < now",
        "timestamp(uint(args.n)) < now",
        "timestamp(args.b) < now",
        "timestamp(args.l) < now",
        "timestamp(int(args.n) + 253402300797) != now",
        "timestamp(-62135596801 + int(args.n) - 3) != now",
        "timestamp(now - now) < now",
        "timestamp(args.t, args.t) < now",
        "int(now - now) == 0",
    ],
)
def test_what_is_no_time_and_no_whole_seconds_is_an_error(source: str) -> None:
    with pytest.raises(EvaluationFailed, match=r"(timestamp|int)\(\) was given"):
        evaluate(source, n=3, b=True, l=[1], t="2026-01-05T12:00:00Z")


def test_message_names_the_text_that_is_no_time() -> None:
    with pytest.raises(EvaluationFailed) as failure:
        evaluate("timestamp(args.a) < timestamp(args.b)", a="2026-01-05T12:00:00Z", b="2026-01-05")

    assert str(failure.value) == (
        "timestamp() was given a text that it cannot read, args.b; it takes texts such as '2026-01-05T12:00:00Z' and "
        "whole seconds such as int(args.n)"
    )


ALL = [
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfYear", "getDayOfWeek", "getHours"),
    *("getMinutes", "getSeconds", "getMilliseconds"),
]


@pytest.mark.parametrize(
    ("text", "zone", "shown"),
    [
        ("2026-12-31T23:59:58.987654321Z", "+09:00", [2027, 0, 1, 0, 0, 5, 8, 59, 58, 987]),
        ("1969-12-31T23:59:58.987654321Z", "-03:30", [1969, 11, 31, 30, 364, 3, 20, 29, 58, 987]),
        ("2026-12-31T23:59:58.987Z", "09:00", [2027, 0, 1, 0, 0, 5, 8, 59, 58, 987]),
        ("2026-12-31T23:59:58.987Z", "Asia/Tokyo", [2027, 0, 1, 0, 0, 5, 8, 59, 58, 987]),
        ("2024-12-31T23:59:58.987Z", "UTC", [2024, 11, 31, 30, 365, 2, 23, 59, 58, 987]),
        ("2026-01-04T00:00:00-00:30", "-00:30", [2026, 0, 4, 3, 3, 0, 0, 0, 0, 0]),
    ],
)
def test_accessors_answer_in_the_zone_that_is_given(text: str, zone: str, shown: list[int]) -> None:
    for accessor, value in zip(ALL, shown, strict=True):
        assert evaluate(f"timestamp(args.t).{accessor}('{zone}') == {value}", t=text) is True


def test_accessors_without_a_zone_answer_in_utc_whatever_the_offset_of_the_text() -> None:
    for source in ("timestamp(args.t)", "timestamp('2026-01-05T23:00:00-12:00')"):
        assert (
            evaluate(f"{source}.getHours() == 11 && {source}.getDate() == 6", t="2026-01-05T23:00:00-12:00")
            is True
        )


@pytest.mark.parametrize(
    ("utc", "hours"),
    [
        ("2026-03-29T00:59:59Z", 1),
        ("2026-03-29T01:00:00Z", 3),
        ("2026-10-25T00:59:59Z", 2),
        ("2026-10-25T01:00:00Z", 2),
    ],
)
def test_zone_keeps_its_summer_time(utc: str, hours: int) -> None:
    assert evaluate(f'timestamp(args.t).getHours("Europe/Berlin") == {hours}', t=utc) is True


def test_office_hours_are_those_of_the_zone() -> None:
    office = "now.getHours('Europe/Berlin') >= 9 && now.getHours('Europe/Berlin') < 17"
    week = "now.getDayOfWeek('Europe/Berlin') in [1, 2, 3, 4, 5]"
    for utc_hour, answer in ((7, False), (8, True), (15, True), (16, False)):
        monday_ms = 1_767_571_200_000 + utc_hour * 3_600_000
        assert evaluate(f"{office} && {week}", monday_ms) is answer
        assert evaluate(f"{office} && {week}", monday_ms - 86_400_000) is False


def test_zones_are_those_of_the_pinned_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine's own database, or none, changes no answer."""
    import zoneinfo

    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    for zone, hours in (("America/New_York", 7), ("Asia/Kolkata", 17), ("Etc/GMT+5", 7)):
        source = f"timestamp('2026-01-05T12:00:00Z').getHours('{zone}') == {hours}"
        assert evaluate(source) is True


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("now.getHours('Mars/Olympus') == args.n", "there is no time zone 'Mars/Olympus'"),
        ("now.getHours('+24:00') == args.n", "an offset has at most 23 hours and 59 minutes"),
        ("now.getHours('../../etc/passwd') == args.n", "there is no time zone '../../etc/passwd'"),
        ("now.getHours(args.zone) == args.n", "getHours() was given a value of a kind that it does not take"),
        ("args.n.getHours('UTC') == 1", "getHours() takes a zone only for a time, such as now"),
        (
            "duration('1h').getHours('UTC') == args.n",
            "getHours() takes a zone only for a time, such as now",
        ),
        ("timestamp('9999-12-31T23:59:59Z').getHours('+01:00') == args.n", "date value out of range"),
    ],
)
def test_zone_that_cannot_be_had_is_an_error(source: str, said: str) -> None:
    with pytest.raises(EvaluationFailed) as failure:
        evaluate(source, n=3, zone="Europe/Berlin")

    assert str(failure.value) == said


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (
            "now.getHours('Europe/Berln') > 9",
            "there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        (
            "now.getHours('+1:00') > 9",
            "there is no time zone '+1:00'; write one such as 'Europe/Berlin' or '+01:00'",
        ),
        (
            "now.getHours('+25:00') > 9",
            "there is no time zone '+25:00'; write one such as 'Europe/Berlin' or '+01:00'",
        ),
        ("now.getHours('') > 9", "there is no time zone ''; write one such as 'Europe/Berlin' or '+01:00'"),
        (
            "now.getHours(args.zone) > 9",
            "getHours() takes a zone as one text in quotes, such as getHours('Europe/Berlin') or getHours('+01:00')",
        ),
        (
            "now < timestamp('2026-01-05 12:00:00Z')",
            "'2026-01-05 12:00:00Z' is not a time; write it as timestamp('2026-01-05T12:00:00Z')",
        ),
        ("now - now < duration('1d')", "'1d' is not a duration; write it as duration('1h30m')"),
    ],
)
def test_time_or_zone_that_fails_in_each_call_is_refused_on_publishing(condition: str, said: str) -> None:
    assert messages_on(condition) == [said]


BEHIND = "a time cannot be added to a duration; write the time first: "


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("duration('1h') + now > timestamp(args.at)", f"{BEHIND}now + duration(…)"),
        ("duration(args.d) + timestamp(args.at) > now", f"{BEHIND}timestamp(…) + duration(…)"),
        (
            "args.a == null && null in {'a': 1}",
            "null cannot be a key of a map; leave this out, or use a list",
        ),
    ],
)
def test_what_cel_answers_and_the_binding_does_not_is_refused_on_publishing(
    condition: str, said: str
) -> None:
    assert messages_on(condition) == [said]
    with pytest.raises(EvaluationFailed):
        evaluate(condition, a=None, d="1h", at="2026-01-05T12:00:00Z")


@pytest.mark.parametrize(
    "condition",
    [
        "now + duration('1h') > timestamp(args.at)",
        "duration('1h') + (now - timestamp(args.at)) > duration('1m')",
        "duration('1h') + now.getHours() > 0",
        "args.l.exists(now, duration('1h') + now > duration('2h'))",
        "null in [args.a]",
        "args.a == null in {true: 1}",
    ],
)
def test_what_only_looks_like_it_is_published(condition: str) -> None:
    assert messages_on(condition) == []


def test_policy_that_was_published_with_one_is_still_read() -> None:
    """Its rule fails, and holds; the others are judged as before."""
    for source in (
        "now.getHours('Mars/Olympus') > 9",
        "now.getHours(args.z) > 9",
        "now < timestamp('2026-01-05')",
    ):
        assert compile_expression(source).source == source


@pytest.mark.parametrize(
    "condition",
    [
        "now.getHours('Europe/Berlin') > 9 && now.getHours('+01:00') > 9 && now.getHours() > 9",
        "now - timestamp('2026-01-05T12:00:00+01:00') < duration('1h30m')",
        "timestamp(args.t) < now && duration(args.d) > duration('-1.5s')",
    ],
)
def test_times_and_zones_that_there_are_are_not_told_of(condition: str) -> None:
    assert messages_on(condition) == []


@pytest.mark.parametrize("source", ["now < timestamp('2026-01-06T00:00:00Z')", "now.getHours() == 12"])
def test_plain_times_run_as_they_stand(source: str) -> None:
    assert program_of(tokenize(source)) is None
