"""Case 10 of the abuse list: another tenant's ids are not found at any door, and leave no event."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture
def mallory(doors: Doors) -> Caller:
    return doors.caller("mallory", "admin", tenant="other")


@pytest.fixture
def theirs(bot: Caller) -> dict[str, Any]:
    return bot.propose(bot.execution())


def _events(caller: Caller, execution_id: str) -> list[str]:
    items = caller.get(f"/v1/executions/{execution_id}/events?limit=500").json()["items"]
    return [item["event_id"] for item in items]


def _requests(call: dict[str, Any]) -> list[tuple[str, str, Any]]:
    execution, hold = f"/v1/executions/{call['execution_id']}", f"/v1/holds/{call['hold_id']}"
    one = f"{execution}/tool-calls/{call['call_id']}"
    return [
        ("GET", execution, None),
        ("GET", f"{execution}?at=1", None),
        ("GET", f"{execution}/events", None),
        ("GET", f"{execution}/tool-calls", None),
        ("GET", one, None),
        ("GET", f"{one}?wait=1", None),
        ("GET", hold, None),
        ("POST", f"{execution}/pause", {}),
        ("POST", f"{execution}/cancel", {}),
        ("POST", f"{execution}/complete", {}),
        ("POST", f"{execution}/tool-calls", {"call_id": "x", "tool": "read_file", "arguments": {}}),
        ("POST", f"{one}/consume", {"digest": call["digest"], "attempt_id": "a"}),
        ("POST", f"{one}/result", {"attempt_id": "a", "outcome": "succeeded"}),
        ("POST", f"{one}/revoke", {}),
        ("POST", f"{one}/report-impact", {"reason": "harm"}),
        ("POST", f"{hold}/decision", {"decision": "approve", "digest": call["digest"]}),
        ("POST", f"{hold}/claim", {}),
        ("POST", f"{hold}/extend", {"seconds": 5}),
        ("POST", f"{hold}/delegate", {"to": "mallory"}),
    ]


async def test_every_door_says_not_found_and_nothing_is_recorded(
    doors: Doors, admin: Caller, mallory: Caller, theirs: dict[str, Any]
) -> None:
    before = await asyncio.to_thread(_events, admin, theirs["execution_id"])
    async with open_socket(mallory.url, mallory.token) as socket:
        await socket.subscribe("events", "holds")
        for method, path, body in _requests(theirs):
            answer = await asyncio.to_thread(mallory.call, method, path, body)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (
                method,
                path,
                answer.text,
            )
            assert answer.headers["content-type"] == "application/problem+json"
        for channel in (
            f"executions:{theirs['execution_id']}",
            f"calls:{theirs['execution_id']}/{theirs['call_id']}",
        ):
            await socket.send(type="subscribe", channels=[channel])
            assert (await socket.next("error"))["code"] == "not_found"
        where = {"execution_id": theirs["execution_id"], "call_id": theirs["call_id"]}
        grant = {"digest": theirs["digest"], "attempt_id": "a"}
        replies = [
            await socket.ask("consume", **where, body=grant),
            await socket.ask(
                "decision", hold_id=theirs["hold_id"], decision="approve", digest=theirs["digest"]
            ),
            await socket.ask("claim", hold_id=theirs["hold_id"]),
        ]
        assert {reply["body"]["code"] for reply in replies} == {"not_found"}
        # A fact of its own tenant comes through the same channel; were there one of the attempts, it came first.
        mine = await asyncio.to_thread(mallory.post, "/v1/executions", {"agent": "m", "execution_id": "mine"})
        first = await socket.next("event")
        assert (first["event_type"], first["execution_id"]) == (
            "ExecutionStarted",
            mine.json()["execution_id"],
        )
    assert await asyncio.to_thread(_events, admin, theirs["execution_id"]) == before


def test_lists_show_ones_own_only(mallory: Caller, theirs: dict[str, Any]) -> None:
    pages = [
        mallory.get("/v1/executions?limit=500"),
        mallory.get("/v1/holds?limit=500"),
        mallory.get("/v1/holds?status=open&limit=500"),
        mallory.get("/v1/audit?limit=500"),
        mallory.get("/v1/agents"),
    ]
    for page in pages:
        assert page.status_code == 200
        assert theirs["execution_id"] not in page.text
        assert "billing" not in page.text


def test_same_ids_in_two_tenants_are_two_executions(doors: Doors, bot: Caller) -> None:
    other = doors.caller("bot", "agent", tenant="other", agent="billing")
    execution_id = bot.execution()
    assert other.get(f"/v1/executions/{execution_id}").status_code == 404
    started = other.post("/v1/executions", {"execution_id": execution_id})
    assert started.status_code == 201
    assert started.json()["tenant"] == "other"
    other.post(f"/v1/executions/{execution_id}/cancel")
    assert bot.get(f"/v1/executions/{execution_id}").json()["state"] == "running"


def test_agents_token_acts_for_its_agent_only(doors: Doors, bot: Caller, theirs: dict[str, Any]) -> None:
    spy = doors.caller("spy", "agent", agent="spy")
    assert spy.post("/v1/executions", {"agent": "billing"}).status_code == 403
    for method, path, body in _requests(theirs):
        answer = spy.call(method, path, body)
        assert answer.status_code == 403, (method, path, answer.text)
    assert spy.get("/v1/executions?agent=billing").status_code == 403
    assert spy.get("/v1/executions").json()["items"] == []
    path = f"/v1/holds/{theirs['hold_id']}/decision"
    own = bot.post(path, {"decision": "approve", "digest": theirs["digest"]})
    assert (own.status_code, own.json()["code"]) == (403, "not_authorised")
