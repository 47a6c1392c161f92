"""An answer that the same person gives again, as a client does whose earlier answer was lost with its process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from placet import AlreadyDecided, AsyncPlacet, AsyncTurn, ChatEvent, Placet
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_chat_live import answered, fresh, serving
from tests.gateway.test_outage_live import stopped

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.mark.parametrize("value", ["staging", {"KEY": "s3cret"}], ids=["text", "variables"])
async def test_answer_repeated_is_one_and_another_comes_too_late(
    doors: Doors, anna: Caller, value: Any
) -> None:
    name = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        if isinstance(value, dict):
            return f"deployed with {len(await turn.hitl.request_env_var(['KEY']))} key"
        return f"deployed to {await turn.hitl.request_clarification('Where?')}"

    async with (
        serving(doors, name, deploy, wait_s=0) as client,
        AsyncPlacet(doors.url, token=anna.token) as person,
    ):
        stream = client.conversations.chat("deploy it")
        request_id = (await anext(stream)).body["request_id"]
        first = await answered(person.conversations.continue_chat(request_id, value))
        theirs = await answered(stream)
        assert first[-1].type == theirs[-1].type == "complete"
        # The turn is over: whoever has lost what came after the answer gets it once more.
        assert await answered(person.conversations.continue_chat(request_id, value)) == first
        told = [await person.conversations.respond(request_id, value) for _ in range(2)]
        decided = theirs[0].body["decision"]["decision_id"]
        assert [one.decision_id for one in told] == [decided, decided]
        with pytest.raises(AlreadyDecided):
            await person.conversations.respond(request_id, {"KEY": "x"} if value != "staging" else "b")


async def test_answer_repeated_shows_the_turn_of_its_question_and_no_later_one(
    doors: Doors, anna: Caller
) -> None:
    name = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        await turn.say("Let me see.")
        return f"{turn.message} to {await turn.hitl.request_clarification('Where?')}"

    def continued(request_id: str) -> list[ChatEvent]:
        with Placet(doors.url, token=anna.token) as person:
            return list(person.conversations.continue_chat(request_id, "staging"))

    conversation_id = fresh("c")
    web = doors.caller(f"{name}-worker", "agent", agent=name)
    async with serving(doors, name, deploy) as client:
        one = client.conversations.chat("one", conversation_id=conversation_id)
        request_id = (await following(one, "hitl_requested")).body["request_id"]
        # A second message waits: its turn is the one that is open once the first is over.
        later = {"text": "two", "message_id": "m2"}
        sent = await asyncio.to_thread(web.post, f"/v1/executions/{conversation_id}/messages", later)
        assert sent.status_code == 201
        first = await asyncio.to_thread(continued, request_id)
        assert [(event.type, event.body.get("text")) for event in first] == [
            ("message", "one to staging"),
            ("complete", "one"),
        ]
        two = client.conversations.follow(conversation_id, message_id="m2")
        await following(two, "hitl_requested")
        again = await asyncio.to_thread(continued, request_id)
        assert [(event.type, event.body) for event in again] == [(event.type, event.body) for event in first]
        await one.aclose()
        await two.aclose()


async def test_answer_names_its_turn_though_the_views_do_not_have_the_question_yet(
    doors: Doors, anna: Caller
) -> None:
    name = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        return f"deployed to {await turn.hitl.request_clarification('Where?')}"

    async with (
        serving(doors, name, deploy) as client,
        AsyncPlacet(doors.url, token=anna.token) as person,
    ):
        with stopped(doors, "projector"):
            stream = client.conversations.chat("deploy it", message_id="m1")
            request_id = (await following(stream, "hitl_requested")).body["request_id"]
            told = await person.conversations.respond(request_id, "staging")
            await following(stream, "complete")
            await stream.aclose()
            # Now no turn is open: which one asked is unknown, and the client is told to repeat the answer.
            body = {"request_id": request_id, "response": "staging"}
            again = await asyncio.to_thread(anna.post, "/agent/hitl/respond", body)
        continued = await answered(person.conversations.continue_chat(request_id, "staging"))
    assert told.message_id == "m1"
    assert (again.status_code, again.json()["code"]) == (503, "unavailable")
    assert [(event.type, event.body["text"]) for event in continued] == [
        ("message", "deployed to staging"),
        ("complete", "deploy it"),
    ]


async def following(events: AsyncGenerator[ChatEvent, None], kind: str) -> ChatEvent:
    """The next event of a kind."""
    async for event in events:
        if event.type == kind:
            return event
    raise AssertionError(f"no {kind}")
