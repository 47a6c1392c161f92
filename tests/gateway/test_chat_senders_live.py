"""Several people in one conversation: who asked an agent for something does not grant it, on a whole stack."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from placet import AsyncTurn
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_chat_live import fresh, serving

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(180)]


async def shell(turn: AsyncTurn) -> str:
    """Ask before anything but a greeting."""
    if turn.message == "hi":
        return "hello"
    granted = await turn.hitl.request_permission(tool="shell", action=turn.message, timeout_seconds=300)
    return "done" if granted else "not done"


def send(by: Caller, conversation_id: str, message_id: str, text: str) -> None:
    answer = by.post(f"/v1/executions/{conversation_id}/messages", {"message_id": message_id, "text": text})
    assert answer.status_code == 201, answer.text


async def held_for(reader: Caller, agent: str) -> dict[str, Any]:
    """The open hold of an agent, as soon as there is one."""
    async with asyncio.timeout(30):
        while True:
            answer = await asyncio.to_thread(reader.get, f"/v1/holds?status=open&agent={agent}")
            for hold in answer.json()["items"]:
                found: dict[str, Any] = hold
                return found
            await asyncio.sleep(0.05)


def may_decide(reader: Caller, hold: dict[str, Any]) -> bool:
    """Whether the hold is in the list of those that the reader can decide."""
    answer = reader.get(f"/v1/holds?decidable=me&agent={hold['agent']}")
    return hold["hold_id"] in {one["hold_id"] for one in answer.json()["items"]}


def decide(by: Caller, hold: dict[str, Any]) -> Any:
    body = {"decision": "approve", "digest": hold["digest"]}
    return by.post(f"/v1/holds/{hold['hold_id']}/decision", body)


async def test_who_asked_the_agent_for_it_cannot_grant_it(doors: Doors, anna: Caller, admin: Caller) -> None:
    name = fresh("shell")
    worker, bert = doors.caller("w", "agent", agent=name), doors.caller("bert", "reviewer")
    conversation_id = worker.execution()
    async with serving(doors, name, shell):
        send(admin, conversation_id, "m1", "hi")
        send(anna, conversation_id, "m2", "rm -rf /prod")
        hold = await held_for(bert, name)
        send(bert, conversation_id, "m3", "hi")
        for asker in (anna, admin):
            refused = await asyncio.to_thread(decide, asker, hold)
            assert (refused.status_code, refused.json()["code"]) == (403, "own_request")
            assert not await asyncio.to_thread(may_decide, asker, hold)
        assert await asyncio.to_thread(may_decide, bert, hold)
        assert (await asyncio.to_thread(decide, bert, hold)).status_code == 200
        async with asyncio.timeout(30):
            turn = f"/v1/executions/{conversation_id}/turns/m2"
            while (await asyncio.to_thread(bert.get, turn)).json()["status"] != "completed":
                await asyncio.sleep(0.05)
    said = bert.get(f"/v1/executions/{conversation_id}/messages").json()["items"]
    assert "done" in [message["text"] for message in said]
