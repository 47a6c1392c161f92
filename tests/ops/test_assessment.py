"""The engine's answers about calls that may be proposed, from what a gateway knows."""

from typing import Any

import orjson
import pytest

from ops.assessment import assessed
from schemas.canonical import canonical
from schemas.trust import ClassFact, ClassPart, encode
from services.domain.policy.trust_class import class_of, terms_of

NOW_MS = 1_780_000_000_000
NOTE = {
    "name": "note",
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
POLICY = {
    "policy": "p",
    "rules": [{"id": "notes", "match": {"tools": ["note"]}, "then": "hold"}],
    "adaptive": {"sample_rate": 0.1},
}
CLASS = "text=text&risk=writes"


def published(kind: str, name: str, document: Any, **more: Any) -> dict[str, Any]:
    field = "definition" if kind == "tool" else "document"
    row = {"kind": kind, "name": name, "version": 1, "by": "olga", "project": "*", field: canonical(document)}
    return row | more


def part(approvals: int = 20, trust_class: str = CLASS, by: str = "rita") -> str:
    facts = tuple(
        ClassFact(offset=number, at_ms=NOW_MS, kind="approval", by=(by,), requester="bot")
        for number in range(approvals)
    )
    record = ClassPart(
        tenant="acme",
        project="main",
        agent="bot",
        tool="note",
        trust_class=trust_class,
        partition=0,
        facts=facts,
        begins_at=0,
        counted=approvals,
        through_offset=approvals - 1,
        record_id="r",
        term=1,
        topic_id="t",
    )
    return encode(record).decode()


def question(**more: Any) -> dict[str, Any]:
    asked = {
        "tenant": "acme",
        "project": "main",
        "agent": "bot",
        "user": "",
        "workspace": "",
        "request": "",
        "context": "{}",
        "calls": [("note", '{"text":"hello"}', "{}")],
        "tools": [],
        "description": "",
        "now_ms": NOW_MS,
        "definitions": [published("policy", "p", POLICY), published("tool", "note", NOTE, tool_version="1")],
        "trust": {"complete": True, "through": {"0": 100}, "parts": [part()]},
        "samples": [],
    } | more
    found: dict[str, Any] = orjson.loads(orjson.dumps(asked))
    return found


def only(**more: Any) -> dict[str, Any]:
    (call,) = assessed(question(**more))["calls"]
    return dict(call)


def test_approved_calls_of_a_class_are_released_and_the_answer_says_by_what() -> None:
    assert class_of(terms_of({"text": "hello"}, NOTE), ("writes",)) == CLASS
    call = only()

    assert (call["requires_approval"], call["effect"], call["rules"]) == (False, "hold", ("p@1/notes",))
    assert call["adaptive"]["is_eligible"]
    assert call["adaptive"]["sample_rate"] == 0.1
    assert call["trust"]["raising"] == 20
    assert call["trust"]["through"] == {"0": 100}
    assert call["adaptive"]["why"] == "trust is enough"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"trust": {"complete": False, "through": {}, "parts": [part()]}}, "trust is not complete"),
        (
            {"trust": {"complete": True, "through": {}, "parts": []}},
            "no approval of such a call is counted yet",
        ),
        (
            {"samples": [("note", CLASS, 0, 7)]},
            "a sampled call like this one waits for people, at 0@7 of the log",
        ),
        (
            {"calls": [("note", '{"text":"hello","to":"eve@example.com"}', "{}")]},
            "20 approvals of note are of calls with arguments of other kinds; none is of such a call",
        ),
    ],
    ids=["unread", "unknown", "sample", "other class"],
)
def test_people_are_asked_where_trust_is_not_enough(more: dict[str, Any], why: str) -> None:
    call = only(**more)

    assert call["requires_approval"]
    assert why in call["adaptive"]["why"]


def test_risk_is_told_of_the_tool_and_with_what_is_new() -> None:
    call = only(calls=[("note", '{"text":"hello","to":"eve@example.com"}', "{}")])

    assert (call["risk_of_tool"]["parts"], call["risk_of_tool"]["level"]) == (("writes",), "low")
    assert (call["risk"]["parts"], call["risk"]["level"]) == (("novel", "writes"), "medium")


def test_sample_of_the_same_calls_with_less_risk_keeps_the_riskier_ones_asked() -> None:
    plain = "text=text&to=@example.com&risk=writes"
    arguments = '{"text":"hello","to":"eve@example.com"}'

    call = only(calls=[("note", arguments, "{}")], samples=[("note", plain, 1, 2)])

    assert call["trust"]["contrary_at"] == "1@2"


def test_word_of_a_withdrawn_account_releases_nothing() -> None:
    rita = published("principal", "rita", {"principal": "rita", "subjects": ["rita"], "disabled": True})

    call = only(definitions=[*question()["definitions"], rita])

    assert call["requires_approval"]
    assert call["trust"]["raising"] == 0


def test_policy_that_cannot_be_read_allows_nothing() -> None:
    broken = published("policy", "q", {"policy": "q", "rules": "none"})
    read = {"policy": "p", "rules": [{"id": "all", "then": "allow"}]}

    rows = [published("policy", "p", read), question()["definitions"][1]]

    assert only(definitions=rows)["effect"] == "allow"
    assert only(definitions=[*rows, broken])["reason"] == "policy_error"


def test_tool_whose_definition_cannot_be_read_is_held() -> None:
    broken = published("tool", "note", {"name": "note", "inputSchema": 5}, tool_version="1")

    call = only(definitions=[published("policy", "p", POLICY), broken])

    assert (call["requires_approval"], call["reason"]) == (True, "unknown_tool")


def test_task_of_tools_has_their_risk_and_no_calls() -> None:
    found = assessed(question(calls=[], tools=["note", "other"], description="pay the invoice"))

    assert found["calls"] == []
    assert found["risk"]["parts"] == (
        "destructive",
        "money",
        "not_idempotent",
        "open_world",
        "unknown_tool",
        "writes",
    )
    assert found["risk"]["required"] == 1.0
