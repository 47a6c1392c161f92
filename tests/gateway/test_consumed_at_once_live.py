"""A proposal that names its attempt: one answer says the verdict and is the leave to run, for that attempt alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

Ask = Callable[[Caller, str, dict[str, Any]], tuple[int, dict[str, Any]]]


def by_rest(bot: Caller, execution_id: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = bot.post(f"/v1/executions/{execution_id}/tool-calls?wait=0", body)
    return answer.status_code, answer.json()


def with_a_key(bot: Caller, execution_id: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    answer = bot.post(path, body, key=f"key-{execution_id}-{body['call_id']}")
    return answer.status_code, answer.json()


def by_socket(bot: Caller, execution_id: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    async def ask() -> dict[str, Any]:
        async with open_socket(bot.url, bot.token) as socket:
            ref = f"ref-{execution_id}-{body['call_id']}"
            return await socket.ask("propose", ref=ref, execution_id=execution_id, body=body)

    reply = asyncio.run(ask())
    return reply["status"], reply["body"]


DOORS = pytest.mark.parametrize("ask", [by_rest, with_a_key, by_socket])


def proposal(tool: str = "read_file", attempt_id: str = "P1", **more: Any) -> dict[str, Any]:
    named = {"tool": tool, "arguments": {"amount": 5}, "attempt_id": attempt_id, **more}
    return {"call_id": f"c-{uuid4().hex[:12]}", **named}


def types_of(bot: Caller, execution_id: str) -> list[str]:
    items = bot.get(f"/v1/executions/{execution_id}/events?limit=200").json()["items"]
    return [item["type"] for item in items]


@DOORS
def test_allowed_call_is_consumed_by_the_answer_to_its_proposal(bot: Caller, ask: Ask) -> None:
    execution_id, body = bot.execution(), proposal()
    status, call = ask(bot, execution_id, body)

    assert (status, call["status"], call["attempt_id"]) == (200, "consumed", "P1")
    assert call["approved_arguments"] == body["arguments"]
    assert call["lease_seconds"] > 0
    path = f"/v1/executions/{execution_id}/tool-calls/{body['call_id']}"
    done = bot.post(f"{path}/result", {"attempt_id": "P1", "outcome": "succeeded", "output": {"rate": 1}})
    assert (done.status_code, done.json()["status"]) == (200, "succeeded")
    (consumption,) = [at for at, name in enumerate(types_of(bot, execution_id)) if name == "GrantConsumed"]
    assert consumption > 0


@DOORS
def test_repeat_has_the_leave_while_its_attempt_has_the_call_and_no_longer(bot: Caller, ask: Ask) -> None:
    execution_id, body = bot.execution(), proposal()
    first = ask(bot, execution_id, body)[1]
    again = ask(bot, execution_id, body)
    assert (again[0], again[1]["status"], again[1]["lease_until"]) == (200, "consumed", first["lease_until"])

    path = f"/v1/executions/{execution_id}/tool-calls/{body['call_id']}"
    assert bot.post(f"{path}/result", {"attempt_id": "P1", "outcome": "unknown"}).status_code == 200
    after = ask(bot, execution_id, body)
    assert (after[0], after[1]["status"]) == (200, "outcome_unknown")
    assert types_of(bot, execution_id).count("GrantConsumed") == 1


def test_repeat_of_an_attempt_whose_lease_has_ended_is_no_leave(doors: Doors, bot: Caller) -> None:
    name = f"read-{uuid4().hex[:8]}"
    operator = doors.caller("olga", "operator")
    definition = {"annotations": {"readOnlyHint": True}, "lease_seconds": 5}
    assert operator.call("PUT", f"/v1/tools/{name}", definition).status_code == 200
    execution_id, body = bot.execution(), proposal(name)
    assert by_rest(bot, execution_id, body)[1]["status"] == "consumed"
    path = f"/v1/executions/{execution_id}/tool-calls/{body['call_id']}"

    wait_for(lambda: bot.get(path).json()["status"], lambda status: status == "outcome_unknown")
    assert by_rest(bot, execution_id, body)[1]["status"] == "outcome_unknown"


def test_another_attempt_has_no_leave_whatever_its_key(doors: Doors, bot: Caller) -> None:
    execution_id, body = bot.execution(), proposal()
    assert with_a_key(bot, execution_id, body)[0] == 200
    rival = {**body, "attempt_id": "P2"}
    status, said = with_a_key(bot, execution_id, rival)
    assert (status, said["code"]) == (409, "idempotency_key_reused")
    status, said = by_rest(bot, execution_id, rival)
    assert (status, said["code"]) == (409, "already_consumed")

    other = doors.caller("bot-2", "agent", agent="billing")
    for _ in range(2):
        status, said = by_rest(other, execution_id, body)
        assert (status, said["code"]) == (409, "already_consumed"), "an attempt's id is no secret"
    plain = {name: value for name, value in body.items() if name != "attempt_id"}
    assert by_rest(bot, execution_id, plain)[1]["attempt_id"] == "P1"


def test_one_of_many_who_propose_at_once_has_the_leave(bot: Caller) -> None:
    execution_id, body = bot.execution(), proposal()
    rivals = [{**body, "attempt_id": f"P{number}"} for number in range(12)]
    with httpx.Client() as client, ThreadPoolExecutor(12) as pool:
        caller = Caller(bot.url, bot.token, client)
        answers = list(pool.map(lambda rival: by_rest(caller, execution_id, rival), rivals))

    won = [call for status, call in answers if status == 200]
    assert [call["status"] for call in won] == ["consumed"]
    assert {call["code"] for status, call in answers if status != 200} == {"already_consumed"}
    assert types_of(bot, execution_id).count("GrantConsumed") == 1


@DOORS
def test_held_call_is_consumed_after_its_decision_by_the_same_attempt(
    bot: Caller, anna: Caller, ask: Ask
) -> None:
    execution_id, body = bot.execution(), proposal("send_money")
    status, call = ask(bot, execution_id, body)
    assert (status, call["status"]) == (202, "held")
    word = {"decision": "approve", "digest": call["digest"]}
    assert anna.post(f"/v1/holds/{call['hold_id']}/decision", word).status_code == 200
    assert ask(bot, execution_id, body)[1]["status"] == "released", "a repeat consumes nothing"

    path = f"/v1/executions/{execution_id}/tool-calls/{body['call_id']}"
    leave = bot.post(f"{path}/consume", {"digest": call["digest"], "attempt_id": "P1"})
    assert (leave.status_code, leave.json()["status"]) == (200, "consumed")


def test_sealed_arguments_come_with_a_consumption_alone(doors: Doors, bot: Caller) -> None:
    name = f"read-{uuid4().hex[:8]}"
    schema = {"type": "object", "properties": {"token": {"type": "string", "x-placet-sensitive": True}}}
    definition = {"annotations": {"readOnlyHint": True}, "inputSchema": schema}
    assert doors.caller("olga", "operator").call("PUT", f"/v1/tools/{name}", definition).status_code == 200
    execution_id, body = bot.execution(), proposal(name, arguments={"token": "hunter2-token"})
    status, call = by_rest(bot, execution_id, body)
    assert (status, call["status"]) == (200, "released")

    path = f"/v1/executions/{execution_id}/tool-calls/{body['call_id']}"
    leave = bot.post(f"{path}/consume", {"digest": call["digest"], "attempt_id": "P1"})
    assert [secret["value"] for secret in leave.json()["secrets"]] == ["hunter2-token"]


@pytest.mark.parametrize("attempt_id", ["", "a b", "x" * 129, 7])
def test_attempt_of_no_form_is_refused(bot: Caller, attempt_id: Any) -> None:
    execution_id, body = bot.execution(), proposal(attempt_id=attempt_id)
    status, said = by_rest(bot, execution_id, body)
    assert (status, said["code"]) == (422, "invalid")
    assert said["errors"][0]["path"] == "attempt_id"
