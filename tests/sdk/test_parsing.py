from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from placet.channel import read_page
from placet.models import Hold, HumanRequest, ToolCall
from placet.parsing import UnexpectedAnswer, parse, parse_time

CALL = {
    "tenant": "acme",
    "execution_id": "e",
    "call_id": "c",
    "revision": 2,
    "status": "released",
    "verdict": {"effect": "hold", "rules": ["r1"], "risk": {"score": 1, "level": "high", "parts": []}},
    "decision": {"decision": "edit", "decision_id": "d1", "at": "2026-11-20T10:00:00.5Z", "feedback": "less"},
    "grant": {"digest": "ab", "token": None, "decision_id": "d1"},
    "hold_id": None,
    "later_invention": {"x": 1},
}


def test_parse_of_a_call_reads_nested_parts_and_ignores_what_it_does_not_know() -> None:
    call = parse(ToolCall, CALL)
    assert (call.revision, call.status, call.hold_id) == (2, "released", "")
    assert call.verdict is not None
    assert call.verdict.risk is not None
    assert (call.verdict.rules, call.verdict.risk.score) == (("r1",), 1.0)
    assert call.decision is not None
    assert call.decision.at == datetime(2026, 11, 20, 10, 0, 0, 500_000, UTC)
    assert (call.feedback, call.idempotency_key) == ("less", "d1")
    assert call.raw["later_invention"] == {"x": 1}


def test_key_for_the_outside_world_is_never_the_calls_id_alone() -> None:
    """Which is unique in its execution only."""
    told = {**CALL, "tenant": "acme", "project": "books", "decision": None, "grant": None}
    keys = {parse(ToolCall, {**told, "execution_id": name}).idempotency_key for name in ("e1", "e2")}
    assert len(keys) == 2


def test_feedback_of_a_call_has_the_policys_word_where_the_policy_said_no_and_nowhere_else() -> None:
    told = {
        effect: parse(
            ToolCall, {**CALL, "decision": None, "verdict": {"effect": effect, "reason": "matched"}}
        ).feedback
        for effect in ("allow", "hold", "deny")
    }
    assert told == {"allow": "", "hold": "", "deny": "matched"}


def test_parse_without_a_required_field_says_so() -> None:
    with pytest.raises(UnexpectedAnswer, match="call_id"):
        parse(ToolCall, {"execution_id": "e", "status": "held"})


@pytest.mark.parametrize(
    ("field", "value"),
    [("revision", "2"), ("status", 3), ("grant", []), ("arguments", "x"), ("deadline_at", "soon")],
)
def test_parse_of_a_value_of_another_kind_names_the_field(field: str, value: object) -> None:
    with pytest.raises(UnexpectedAnswer, match=field):
        parse(ToolCall, {**CALL, field: value})


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_parse_of_no_object_refuses(data: object) -> None:
    with pytest.raises(UnexpectedAnswer):
        parse(Hold, data)


def test_parse_of_a_true_is_no_integer() -> None:
    @dataclass(frozen=True)
    class Count:
        n: int

    with pytest.raises(UnexpectedAnswer):
        parse(Count, {"n": True})


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-20T10:00:00Z", 0),
        ("2026-11-20T11:00:00.1+01:00", 100_000),
        ("2026-11-20T10:00:00.1234567Z", 123_456),
    ],
)
def test_parse_time_of_rfc3339_is_utc(text: str, microsecond: int) -> None:
    assert parse_time(text) == datetime(2026, 11, 20, 10, 0, 0, microsecond, UTC)


def test_parse_time_without_an_offset_refuses() -> None:
    with pytest.raises(ValueError, match="offset"):
        parse_time("2026-11-20T10:00:00")


def test_page_is_iterated_over_like_its_items() -> None:
    page = read_page(lambda item: item, {"items": [{"n": 1}, {"n": 2}], "next_cursor": "k"})
    assert ([item["n"] for item in page], len(page), page.next_cursor) == ([1, 2], 2, "k")
    assert len(read_page(lambda item: item, {"items": []})) == 0


def test_request_says_what_is_asked() -> None:
    told = {
        "request_id": "r1",
        "hold_id": "h1",
        "execution_id": "e1",
        "kind": "decision",
        "question": "Where?",
        "options": ["staging", {"id": "production"}],
        "fields": [],
        "decision_type": "branch",
        "asks": None,
        "input_schema": {"enum": ["staging", "production"]},
        "status": "expired",
        "timed_out": True,
        "deadline_at": "2026-11-20T10:00:00Z",
    }
    request = parse(HumanRequest, told)
    assert (request.kind, request.question, request.decision_type) == ("decision", "Where?", "branch")
    assert request.options == ("staging", {"id": "production"})
    assert (request.fields, request.asks, request.timed_out) == ((), None, True)
    assert request.input_schema == {"enum": ["staging", "production"]}
    assert request.deadline_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
