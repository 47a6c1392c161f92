"""Every field of a request, through REST and both sockets: shown to the person, and answers held against it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sealed import answered, refused, taken, values_of
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]

REGIONS = [{"id": "eu", "label": "Europe", "recommended": True}, "us"]
ASKS = {"allow_custom": False, "multiple": False, "tool": "", "action": "", "risk": "", "remember": False}
QUESTIONS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"kind": "decision", "options": REGIONS, "multiple": True}, "eu", ["eu", "us"]),
    ({"kind": "decision", "options": REGIONS, "allow_custom": True}, ["eu"], "asia"),
    (
        {"kind": "permission", "tool": "shell", "action": "rm -rf build", "risk": "high", "remember": True},
        {"granted": True},
        {"granted": True, "remember": True},
    ),
]


@pytest.mark.parametrize(("content", "bad", "good"), QUESTIONS)
async def test_request_is_shown_whole_and_answered_as_it_says_over_each_door(
    bot: Caller, anna: Caller, content: dict[str, Any], bad: Any, good: Any
) -> None:
    async with open_socket(anna.url, anna.token) as person, open_socket(bot.url, bot.token) as agent:
        await person.subscribe("holds")
        reply = await agent.ask("request", body={"question": "Which?", **content})
        assert reply["status"] == 201
        shown = await person.next("hitl_requested", request_id=reply["body"]["request_id"])
        told = {name: value for name, value in content.items() if name in ASKS}
        assert shown["asks"] == reply["body"]["asks"] == {**ASKS, **told}
        assert shown["input_schema"] == reply["body"]["input_schema"]
        view = anna.get(f"/v1/holds/{shown['hold_id']}/view").json()["text"]
        assert all(str(value) in view for value in (content.get("tool", ""), content.get("action", "")))

        word = {"decision": "respond", "digest": shown["digest"]}
        by_socket = await person.ask("decision", hold_id=shown["hold_id"], value=bad, **word)
        by_rest = anna.post(f"/v1/holds/{shown['hold_id']}/decision", {**word, "value": bad})
        assert by_socket["status"] == by_rest.status_code == 422
        assert by_socket["body"]["detail"] == by_rest.json()["detail"]
        done = await person.ask("decision", hold_id=shown["hold_id"], value=good, **word)
        assert done["status"] == 200
    request = bot.get(
        f"/v1/requests/{shown['request_id']}?execution_id={shown['execution_id']}&wait=5"
    ).json()
    assert request["response"] == good


@pytest.mark.parametrize(
    ("content", "path"),
    [({"kind": "clarification", "multiple": True, "options": ["a"]}, None), ({"risk": "fatal"}, "risk")],
)
def test_request_with_a_field_that_does_not_fit_is_refused(
    bot: Caller, content: dict[str, Any], path: str | None
) -> None:
    answer = bot.post("/v1/requests", {"question": "Which?", **content})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert path is None or [error["path"] for error in answer.json()["errors"]] == [path]


def test_variable_is_held_against_its_pattern_before_it_is_sealed_and_an_optional_one_may_be_left_out(
    bot: Caller, anna: Caller
) -> None:
    fields = [
        {"name": "KEY", "description": "of the account", "pattern": "^sk-"},
        {"name": "REGION", "required": False, "secret": False},
    ]
    body = {"request_id": f"r-{uuid4().hex[:8]}", "kind": "env_var", "question": "The key?", "fields": fields}
    request = bot.post("/v1/requests", body).json()
    for wrong in ({"KEY": "hunter2"}, {"REGION": "eu"}, {"KEY": "sk-1", "OTHER": "x"}):
        answer = answered(anna, request, wrong)
        assert refused(answer) == (422, "invalid_arguments"), wrong
        assert "hunter2" not in answer.text
    assert answered(anna, request, {"KEY": "sk-1"}).status_code == 200
    assert values_of(taken(bot, request)) == {"/KEY": "sk-1"}


async def test_question_that_nobody_answers_reminds_people_over_socket_and_audit(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    analyst = doors.caller("ana", "analyst")
    async with open_socket(anna.url, anna.token) as person:
        await person.subscribe("holds")
        body = {"question": "Which?", "timeout_seconds": 60, "remind_after_seconds": 0.5}
        request = bot.post("/v1/requests", body).json()
        opened = await person.next("hitl_requested", request_id=request["request_id"])
        assert opened["remind_at"] is not None
        changed = await person.next("hold_changed", hold_id=opened["hold_id"])
    assert (changed["change"], changed["status"], changed["remind_at"]) == ("reminded", "open", None)
    rows = analyst.get(f"/v1/audit?after={changed['cursor']}&subject=placet:timer&limit=500").json()["items"]
    assert [row["action"] for row in rows if row["hold_id"] == opened["hold_id"]] == ["remind"]
    late = bot.post("/v1/requests", {**body, "remind_after_seconds": 60})
    assert (late.status_code, late.json()["code"]) == (422, "invalid")
