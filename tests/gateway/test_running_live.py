"""What an agent learns while its call runs, and of what people made of it, over REST and the WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket


def held(bot: Caller, anna: Caller) -> dict[str, Any]:
    call = bot.propose(bot.execution(), arguments={"amount": 5})
    found: dict[str, Any] = anna.get(f"/v1/holds/{call['hold_id']}").json()
    return found


def decide(caller: Caller, hold: dict[str, Any], decision: str, **more: Any) -> Any:
    body = {"decision": decision, "digest": hold["digest"], **more}
    return caller.post(f"/v1/holds/{hold['hold_id']}/decision", body)


def call_of(hold: dict[str, Any]) -> str:
    return f"/v1/executions/{hold['execution_id']}/tool-calls/{hold['call_id']}"


def test_agent_learns_what_was_changed_by_whom_and_why(bot: Caller, anna: Caller) -> None:
    hold = held(bot, anna)
    assert decide(anna, hold, "edit", edited_arguments={"amount": 4}, feedback="less").status_code == 200
    (edit,) = bot.get(call_of(hold)).json()["edits"]
    assert (edit["by"], edit["feedback"], edit["revision"]) == ("anna", "less", 2)
    assert edit["patch"] == [{"op": "replace", "path": "/amount", "value": 4}]


def test_late_decision_names_who_decided(doors: Doors, bot: Caller, anna: Caller) -> None:
    hold = held(bot, anna)
    won = decide(anna, hold, "approve").json()
    late = decide(doors.caller("otto", "reviewer"), hold, "reject").json()
    assert (late["code"], late["winning_decision_id"]) == ("already_decided", won["decision_id"])
    assert late["detail"] == "anna decided it first"


def test_rejected_question_tells_why(bot: Caller, anna: Caller) -> None:
    body = {"execution_id": bot.execution(), "question": "Which account?"}
    asked = bot.post("/v1/requests", body).json()
    empty = {"decision": "respond", "value": ""}
    assert anna.post(f"/v1/holds/{asked['hold_id']}/decision", empty).json()["code"] == "invalid"
    no = {"decision": "reject", "feedback": "ask the treasurer"}
    assert anna.post(f"/v1/holds/{asked['hold_id']}/decision", no).status_code == 200
    found = bot.get(f"/v1/requests/{asked['request_id']}").json()
    assert (found["decision"], found["feedback"], found["by"]) == ("reject", "ask the treasurer", "anna")
    assert found["response"] is None


def test_sign_of_life_that_comes_early_leaves_the_lease_as_it_is(bot: Caller, anna: Caller) -> None:
    hold = held(bot, anna)
    decide(anna, hold, "approve")
    consumed = bot.post(f"{call_of(hold)}/consume", {"digest": hold["digest"], "attempt_id": "a1"}).json()
    assert consumed["lease_seconds"] == 60
    for _ in range(3):
        answer = bot.post(f"{call_of(hold)}/heartbeat", {"attempt_id": "a1"})
        assert (answer.status_code, answer.json()["lease_until"]) == (200, consumed["lease_until"])
    events = bot.get(f"/v1/executions/{hold['execution_id']}/events").json()["items"]
    assert sum(event["type"] == "CommandRefused" for event in events) == 1, "one, however often it is said"
    other = bot.post(f"{call_of(hold)}/heartbeat", {"attempt_id": "a2"})
    assert (other.status_code, other.json()["code"]) == (409, "already_consumed")


async def test_sign_of_life_in_time_renews_the_lease_over_the_socket(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    operator = doors.caller("olga", "operator")
    name = f"slow-{uuid4().hex[:8]}"
    assert operator.call("PUT", f"/v1/tools/{name}", {"lease_seconds": 5}).status_code == 200
    call = bot.propose(bot.execution(), tool=name)
    hold = anna.get(f"/v1/holds/{call['hold_id']}").json()
    decide(anna, hold, "approve")
    consumed = bot.post(f"{call_of(hold)}/consume", {"digest": hold["digest"], "attempt_id": "a1"}).json()
    where = {"execution_id": hold["execution_id"], "call_id": hold["call_id"]}
    async with open_socket(doors.url, bot.token) as socket:
        while True:
            reply = await socket.ask("heartbeat", **where, body={"attempt_id": "a1"})
            assert reply["status"] == 200, reply
            if reply["body"]["lease_until"] > consumed["lease_until"]:
                break
            await asyncio.sleep(0.25)
    assert reply["body"]["status"] == "consumed"
