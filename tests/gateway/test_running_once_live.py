"""A 200 to a consumption is the leave to run: it is given only while this very attempt has the call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import wait_for

Again = Callable[[Caller, str, dict[str, Any]], tuple[int, dict[str, Any]]]
REF = "the-first-ref"


def without_a_key(bot: Caller, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = bot.post(f"{path}/consume", body)
    return answer.status_code, answer.json()


def with_its_key(bot: Caller, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = bot.post(f"{path}/consume", body, key=f"{REF}-{path}")
    return answer.status_code, answer.json()


def with_its_ref(bot: Caller, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    _, _, _, execution_id, _, call_id = path.split("/")
    where = {"execution_id": execution_id, "call_id": call_id}

    async def ask() -> dict[str, Any]:
        async with open_socket(bot.url, bot.token) as socket:
            return await socket.ask("consume", ref=f"{REF}-{call_id}", **where, body=body)

    reply = asyncio.run(ask())
    return reply["status"], reply["body"]


def approve(person: Caller, hold_id: str, decision: str = "approve") -> None:
    digest = person.get(f"/v1/holds/{hold_id}").json()["digest"]
    answer = person.post(f"/v1/holds/{hold_id}/decision", {"decision": decision, "digest": digest})
    assert answer.status_code == 200, answer.text


def consumed(bot: Caller, anna: Caller, again: Again, tool: str = "send_money") -> tuple[str, dict[str, Any]]:
    """A call that the attempt P1 consumed by this way: its path, and what P1 asked."""
    call = bot.propose(bot.execution(), tool)
    approve(anna, call["hold_id"])
    path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
    first = {"digest": call["digest"], "attempt_id": "P1"}
    for _ in range(2):
        status, found = again(bot, path, first)
        assert (status, found["status"], found["attempt_id"]) == (200, "consumed", "P1")
    return path, first


def report(bot: Caller, path: str, outcome: str, attempt: str = "P1") -> tuple[int, dict[str, Any]]:
    answer = bot.post(f"{path}/result", {"attempt_id": attempt, "outcome": outcome})
    return answer.status_code, answer.json()


def code(answer: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    assert "approved_arguments" not in answer[1]
    return answer[0], answer[1]["code"]


def grants_of(anna: Caller, path: str) -> list[str]:
    items = anna.get(f"/v1/executions/{path.split('/')[3]}/events?limit=200").json()["items"]
    return [item["data"]["attempt_id"] for item in items if item["type"] == "GrantConsumed"]


@pytest.mark.parametrize("again", [without_a_key, with_its_key, with_its_ref])
def test_case_04_consumption_repeated_after_a_second_run_was_approved_is_no_leave_to_run(
    bot: Caller, anna: Caller, again: Again
) -> None:
    path, first = consumed(bot, anna, again)
    assert report(bot, path, "unknown")[0] == 200
    assert code(again(bot, path, first)) == (409, "not_released")
    approve(anna, bot.get(path).json()["hold_id"])

    assert code(again(bot, path, first))[0] == 409
    assert code(without_a_key(bot, path, first)) == (409, "already_consumed"), "a fresh attempt id is needed"
    second = {**first, "attempt_id": "P2"}
    assert without_a_key(bot, path, second)[0] == 200
    assert code(again(bot, path, first))[0] == 409
    assert without_a_key(bot, path, second)[0] == 200

    assert grants_of(anna, path) == ["P1", "P2"]
    assert report(bot, path, "succeeded", "P2")[0] == 200


@pytest.mark.parametrize("again", [without_a_key, with_its_key])
@pytest.mark.parametrize(
    ("end", "said"),
    [("succeeded", "already_consumed"), ("rejected", "already_consumed"), ("revoked", "not_released")],
)
def test_case_04_consumption_repeated_after_the_call_has_ended_is_no_leave_to_run(
    bot: Caller, anna: Caller, again: Again, end: str, said: str
) -> None:
    path, first = consumed(bot, anna, again)
    assert report(bot, path, "succeeded" if end == "succeeded" else "unknown")[0] == 200
    if end != "succeeded":
        approve(anna, bot.get(path).json()["hold_id"], "reject" if end == "rejected" else "approve")
    if end == "revoked":
        assert anna.post(f"{path}/revoke", {"reason": "stop"}).status_code == 200

    assert code(again(bot, path, first)) == (409, said)
    assert grants_of(anna, path) == ["P1"]


@pytest.mark.parametrize("again", [without_a_key, with_its_key])
def test_case_04_consumption_repeated_after_its_lease_ended_is_no_leave_to_run(
    doors: Doors, bot: Caller, anna: Caller, again: Again
) -> None:
    name = f"brief-{uuid4().hex[:8]}"
    operator = doors.caller("olga", "operator")
    assert operator.call("PUT", f"/v1/tools/{name}", {"lease_seconds": 5}).status_code == 200
    path, first = consumed(bot, anna, again, name)
    wait_for(lambda: bot.get(path).json()["status"], lambda status: status == "outcome_unknown")

    assert code(again(bot, path, first)) == (409, "not_released")
    late = bot.post(f"{path}/heartbeat", {"attempt_id": "P1"})
    assert (late.status_code, late.json()["code"]) == (409, "not_released")


def test_sign_of_life_after_the_attempts_own_report_is_refused_though_one_was_taken_in_that_part_of_its_lease(
    bot: Caller, anna: Caller
) -> None:
    path, _ = consumed(bot, anna, without_a_key)
    assert bot.post(f"{path}/heartbeat", {"attempt_id": "P1"}).status_code == 200
    assert report(bot, path, "unknown")[0] == 200
    late = bot.post(f"{path}/heartbeat", {"attempt_id": "P1"})
    assert (late.status_code, late.json()["code"]) == (409, "not_released")


def test_report_on_a_run_that_was_released_anew_is_not_answered_by_that_of_the_run_before(
    bot: Caller, anna: Caller
) -> None:
    path, _ = consumed(bot, anna, without_a_key)
    assert report(bot, path, "unknown")[0] == 200
    assert report(bot, path, "unknown")[0] == 200, "the same report about the same run"
    approve(anna, bot.get(path).json()["hold_id"])
    assert code(report(bot, path, "unknown")) == (409, "not_released")
