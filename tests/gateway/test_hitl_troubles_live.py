"""docs/hitl/troubleshooting.md: each command shows the cause that its section names, on a running stack."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import pytest

from placet import AsyncTurn
from schemas.limits import TURN_LEASE_MS
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, event_types
from tests.gateway.test_chat_live import serving
from tests.gateway.test_hitl_pages_live import run_shell
from tests.pages import Block
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


def shown(block: Block, caller: Caller, **variables: str) -> str:
    """What the commands of a section print for somebody."""
    return run_shell(block, caller.url, PLACET_URL=caller.url, PLACET_TOKEN=caller.token, **variables)


def objects(text: str) -> list[dict[str, Any]]:
    """The JSON texts that were printed, one after another."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        found.append(one)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def viewed(person: Caller, execution_id: str, event: str, times: int = 1) -> None:
    """Wait until the views have so many events of a type: what the pages' commands list is read from them."""
    wait_for(lambda: event_types(person, execution_id).count(event), lambda found: found >= times)


def sent(bot: Caller, text: str = "hello") -> tuple[str, str]:
    """A conversation with one message, and the message."""
    conversation = bot.execution()
    turn = bot.post(f"/v1/executions/{conversation}/messages", {"text": text})
    assert turn.status_code == 201, turn.text
    return conversation, turn.json()["turn_id"]


def claimed(bot: Caller, agent: str) -> dict[str, Any]:
    answer = bot.post(f"/v1/agents/{agent}/turns/claim?wait=20", {"attempt_id": uuid4().hex})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["turn"]
    return found


@pytest.fixture
def agent() -> str:
    return fresh("agent")


@pytest.fixture
def own(doors: Doors, agent: str) -> Caller:
    """A caller with the token of the agent."""
    return doors.caller("bot", "agent", agent=agent)


def asked(own: Caller, **more: Any) -> dict[str, Any]:
    answer = own.post("/v1/requests", {"question": "Which?", **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_silent_stream(own: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    turn, state = page_blocks
    conversation, message = sent(own)
    where = {"CONVERSATION": conversation, "MESSAGE": message}
    assert objects(shown(turn, anna, **where))[0]["status"] == "waiting"
    assert anna.post(f"/v1/executions/{conversation}/pause", {}).status_code == 200
    assert "paused" in shown(state, anna, **where)


def test_lost_workers(own: Caller, anna: Caller, agent: str, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    conversation, _ = sent(own)
    assert claimed(own, agent)["conversation_id"] == conversation
    # Its worker gives no sign of life.
    wait_for(
        lambda: event_types(anna, conversation),
        lambda types: "TurnYielded" in types,
        within_s=TURN_LEASE_MS / 1000 + 30,
    )
    (event,) = objects(shown(block, anna, CONVERSATION=conversation))
    assert event["data"]["cause"] == "lease"


async def test_failed_turn(doors: Doors, anna: Caller, agent: str, page_blocks: list[Block]) -> None:
    (block,) = page_blocks

    async def failing(turn: AsyncTurn) -> str:
        raise RuntimeError("no such plan")

    async with serving(doors, agent, failing) as client:
        events = [event async for event in client.conversations.chat("hello")]
    conversation = events[-1].body["conversation_id"]
    await asyncio.to_thread(viewed, anna, conversation, "TurnEnded")
    (event,) = objects(await asyncio.to_thread(shown, block, anna, CONVERSATION=conversation))
    assert (event["data"]["outcome"], event["data"]["error"]) == ("failed", "RuntimeError: no such plan")


def test_nobody_is_asked(own: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    request = asked(own)
    viewed(anna, request["execution_id"], "HoldOpened")
    inbox, hold = objects(shown(block, anna, REQUEST=request["request_id"]))
    assert request["hold_id"] in json.dumps(inbox)
    assert hold["status"] == "open"
    word = {"decision": "respond", "value": "that one"}
    assert anna.post(f"/v1/holds/{request['hold_id']}/decision", word).status_code == 200
    _, hold = objects(shown(block, anna, REQUEST=request["request_id"]))
    assert (hold["status"], hold["response"]) == ("resolved", "that one")


def test_refused_answer(own: Caller, anna: Caller, agent: str, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    request = asked(own, kind="decision", options=["a", "b"])
    word = {"request_id": request["request_id"], "response": "c"}
    assert anna.post("/agent/hitl/respond", word).status_code == 422
    viewed(anna, request["execution_id"], "DecisionRefused")
    (event,) = objects(shown(block, anna, CONVERSATION=request["execution_id"]))
    assert (event["data"]["code"], event["data"]["by"]) == ("unknown_option", "anna")


async def test_question_anew(doors: Doors, anna: Caller, agent: str, page_blocks: list[Block]) -> None:
    (block,) = page_blocks

    async def forgetful(turn: AsyncTurn) -> str:
        text = f"Which one, as of {uuid4()}?"
        return str(await turn.hitl.request_clarification(text))

    async with (
        serving(doors, agent, forgetful, wait_s=0) as client,
        aclosing(client.conversations.chat("hello")) as stream,
    ):
        conversation = (await anext(stream)).body["execution_id"]
        await asyncio.to_thread(answer_next, anna, agent, "this")
        # The worker must be there until the turn has been taken up again.
        await asyncio.to_thread(viewed, anna, conversation, "HumanInputRequested", 2)
    found = objects(await asyncio.to_thread(shown, block, anna, CONVERSATION=conversation))
    assert len({event["data"]["request_id"] for event in found}) == 2


def test_expired_question(own: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    request = asked(own, timeout_seconds=0.2)
    conversation = request["execution_id"]
    viewed(anna, conversation, "HoldExpired")
    (event,) = objects(shown(block, anna, CONVERSATION=conversation))
    assert event["data"]["hold_id"] == request["hold_id"]


def test_unknown_outcome(own: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    conversation = own.execution()
    call = own.propose(conversation, "read_file", arguments={})
    calls = f"/v1/executions/{conversation}/tool-calls/{call['call_id']}"
    attempt = {"attempt_id": uuid4().hex}
    assert own.post(f"{calls}/consume", {"digest": call["digest"], **attempt}).status_code == 200
    result = own.post(f"{calls}/result", {**attempt, "outcome": "unknown", "error": "its process was lost"})
    assert result.status_code == 200, result.text
    viewed(anna, conversation, "HoldOpened")
    inbox, event = objects(shown(block, anna, CONVERSATION=conversation))
    assert "outcome_unknown" in json.dumps(inbox)
    assert event["data"]["call_id"] == call["call_id"]


def test_closed_conversation(own: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    conversation, _ = sent(own)
    assert own.post(f"/v1/executions/{conversation}/cancel", {}).status_code == 200
    refused = own.post("/agent/chat", {"message": "again", "conversation_id": conversation})
    assert (refused.status_code, refused.json()["code"]) == (409, "execution_closed")
    (execution,) = objects(shown(block, anna, CONVERSATION=conversation))
    assert execution["state"] == "cancelled"


def test_foreign_page(anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    said = shown(block, anna)
    assert said.startswith("HTTP/1.1 405")
    assert "access-control-allow-origin" not in said.lower()


def test_state_of_the_installation(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    status, ready = objects(shown(block, anna, DATA_DIR=str(doors.stack.data_dir)))
    assert {part["state"] for part in status["components"]} == {"ready"}
    assert ready
