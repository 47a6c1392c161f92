"""Several people in one conversation: who asked an agent for something does not grant it, on a whole stack."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from placet import AsyncTurn
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_chat_live import fresh, serving

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PLACET = str(Path(sys.executable).with_name("placet"))


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


def terminal(doors: Doors, by: Caller, *words: str) -> str:
    """What a command of the terminal prints."""
    env = {**os.environ, "PLACET_URL": doors.url, "PLACET_TOKEN": by.token, "COLUMNS": "200"}
    ran = subprocess.run([PLACET, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def pay(turn: AsyncTurn) -> str:
    """Pay what the message says, through the gate."""

    @turn.run.gated(tool="send_money")
    async def send_money(amount: int) -> int:
        return amount

    return "hello" if turn.message == "hi" else f"paid {await send_money(5)}"


@pytest.mark.parametrize("function", [shell, pay])
async def test_reviewer_is_shown_the_message_for_which_the_agent_asks(
    doors: Doors, anna: Caller, function: Any
) -> None:
    name, wanted = fresh("shown"), "rm -rf /prod, and pay 5 for it"
    worker, bert = doors.caller("w", "agent", agent=name), doors.caller("bert", "reviewer")
    conversation_id = fresh("c")
    body = {"execution_id": conversation_id, "request": "hi there"}
    assert worker.post("/v1/executions", body).status_code == 201
    async with serving(doors, name, function):
        send(bert, conversation_id, "m1", "hi")
        send(anna, conversation_id, "m2", wanted)
        hold = await held_for(bert, name)
        view = (await asyncio.to_thread(bert.get, f"/v1/holds/{hold['hold_id']}/view")).json()
        shown = await asyncio.to_thread(terminal, doors, bert, "show", hold["hold_id"])
        inbox = await asyncio.to_thread(terminal, doors, bert, "inbox")
        send(bert, conversation_id, "m3", "hi")
        again = (await asyncio.to_thread(bert.get, f"/v1/holds/{hold['hold_id']}/view")).json()
    assert (hold["request"], hold["view_version"]) == (wanted, 12)
    assert view["text"].splitlines()[2] == f"asked of the agent: {wanted}"
    assert hashlib.sha256(view["text"].encode()).hexdigest() == hold["view_digest"]
    assert again["text"] == view["text"]
    lines = [line.strip() for line in shown.splitlines()]
    assert lines.index("asked first in the conversation: hi there") + 1 == lines.index(
        f"asked of the agent: {wanted}"
    )
    assert f"asked: {wanted}" in " ".join(inbox.split())


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


@pytest.mark.parametrize("by", ["claim", "body", "chat"])
async def test_user_of_an_agents_token_cannot_grant_what_was_asked_for_them(
    doors: Doors, anna: Caller, by: str
) -> None:
    name = fresh("shell")
    bert, worker = doors.caller("bert", "reviewer"), doors.caller("w", "agent", agent=name)
    page = doors.caller("page", "agent", agent=name, user="anna" if by == "claim" else "*")
    named = {} if by == "claim" else {"user": "anna"}
    conversation_id = worker.execution()
    async with serving(doors, name, shell):
        message = {"message_id": "m1", "text": "rm -rf /prod", **named}
        if by == "chat":
            body = {
                "message": "rm -rf /prod",
                "message_id": "m1",
                "conversation_id": conversation_id,
                **named,
            }
            answering = asyncio.create_task(asyncio.to_thread(page.post, "/agent/chat", body))
        else:
            sent = page.post(f"/v1/executions/{conversation_id}/messages", message)
            assert sent.status_code == 201, sent.text
        hold = await held_for(bert, name)
        refused = await asyncio.to_thread(decide, anna, hold)
        assert (refused.status_code, refused.json()["code"]) == (403, "own_request")
        assert not await asyncio.to_thread(may_decide, anna, hold)
        assert (await asyncio.to_thread(decide, bert, hold)).status_code == 200
        if by == "chat":
            assert (await asyncio.wait_for(answering, 60)).status_code == 200


def test_token_names_no_user_but_its_own(doors: Doors) -> None:
    name = fresh("shell")
    plain, bound = (doors.caller("w", "agent", agent=name, user=user) for user in (None, "anna"))
    conversation_id = plain.execution()
    message = {"message_id": "m1", "text": "hi", "user": "bert"}
    for caller in (plain, bound):
        refused = caller.post(f"/v1/executions/{conversation_id}/messages", message)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_authorised")
