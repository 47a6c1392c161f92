"""The human bridge: questions and answers in its own few messages, beside every other way to ask and to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.sockets import bridge_protocol
from gateway.sockets.protocol import type_of
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

WITHIN_S = 60.0


def assert_documented(message: dict[str, Any]) -> None:
    """Fail if a message is not one of those that the AsyncAPI document describes, with all of its fields."""
    (model,) = [model for model in bridge_protocol.SERVER.values() if type_of(model) == message["type"]]
    model.model_validate(message)
    assert message.keys() <= model.model_fields.keys(), message


class Bridge:
    """A client of the bridge."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.kept: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def next(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next message of a kind with these fields; others that come meanwhile are kept."""
        return await self.next_of(kind, **fields)

    async def next_of(self, *kinds: str, **fields: Any) -> dict[str, Any]:
        """The next message of one of these kinds with these fields; others that come meanwhile are kept."""

        def fits(message: dict[str, Any]) -> bool:
            return message["type"] in kinds and all(message[name] == value for name, value in fields.items())

        async with asyncio.timeout(WITHIN_S):
            while not any(map(fits, self.kept)):
                self.kept.append(json.loads(await self.connection.recv()))
                assert_documented(self.kept[-1])
        found = next(filter(fits, self.kept))
        self.kept.remove(found)
        return found


@asynccontextmanager
async def bridge_of(caller: Caller, first_message: bool = False) -> AsyncIterator[Bridge]:
    url = caller.url.replace("http", "ws", 1) + "/human-bridge"
    headers = {} if first_message else {"Authorization": f"Bearer {caller.token}"}
    async with connect(url, additional_headers=headers) as connection:
        found = Bridge(connection)
        if first_message:
            await found.send(type="authenticate", token=caller.token)
        await found.next("authenticated")
        yield found


def refused_decisions(person: Caller, execution_id: str) -> list[dict[str, Any]]:
    """The refused decisions of an execution in the log, as soon as there is one."""

    def found() -> list[dict[str, Any]]:
        events = person.get(f"/v1/executions/{execution_id}/events?limit=200").json()["items"]
        return [event["data"] for event in events if event["type"] == "DecisionRefused"]

    return wait_for(found, bool)


async def closed_with(connection: ClientConnection) -> int | None:
    """The code with which the gateway closes a connection."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while True:
                await connection.recv()
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


def fresh() -> str:
    return f"task-{uuid4().hex[:12]}"


@pytest.mark.parametrize("first_message", [False, True])
async def test_prompt_is_published_to_people_and_its_answer_to_whoever_asked(
    bot: Caller, anna: Caller, first_message: bool
) -> None:
    task_id = fresh()
    async with bridge_of(bot, first_message) as agent, bridge_of(anna, first_message) as person:
        await agent.send(type="publish", task_id=task_id, prompt="Продолжить?")
        assert await agent.next("published") == {
            "type": "published",
            "task_id": task_id,
            "status": "waiting_for_human",
        }
        published = await person.next("publish", task_id=task_id)
        assert (published["prompt"], published["kind"]) == ("Продолжить?", "clarification")
        await person.send(type="answer", task_id=task_id, response="Да, продолжить.")
        await person.next("answered", task_id=task_id)
        for one in (agent, person):
            assert (await one.next("answer", task_id=task_id))["response"] == "Да, продолжить."
    found = bot.get(f"/v1/human-input/{task_id}?wait=5")
    assert found.json() == {"response": "Да, продолжить."}


async def test_question_of_the_tool_is_published_also_to_who_comes_later(bot: Caller, anna: Caller) -> None:
    run = bot.post("/v1/tools:run", {"name": "human_input", "arguments": {"prompt": "Go on?"}}).json()
    task_id = run["result"]["structValue"]["fields"]["task_id"]["stringValue"]
    async with bridge_of(anna) as person:
        published = await person.next("publish", task_id=task_id)
        assert published["prompt"] == "Go on?"
        hold_id = bot.get(f"/v1/requests/{task_id}").json()["hold_id"]
        word = {"decision": "reject", "feedback": "ask the owner"}
        await asyncio.to_thread(anna.post, f"/v1/holds/{hold_id}/decision", word)
        closed = await person.next("closed", task_id=task_id)
        assert (closed["status"], closed["feedback"]) == ("rejected", "ask the owner")
        await person.send(type="answer", task_id=task_id, response="late")
        assert (await person.next("error", task_id=task_id))["code"] == "already_decided"


@pytest.mark.parametrize("names_hold", [False, True])
@pytest.mark.parametrize("is_later", [False, True])
async def test_answer_to_a_question_that_another_has_answered_is_refused_and_recorded(
    doors: Doors, bot: Caller, anna: Caller, names_hold: bool, is_later: bool
) -> None:
    """To a person who was shown the question, and to one who came when it was closed."""
    rob, task_id = doors.caller("rob", "reviewer"), fresh()
    asked = bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?"}).json()
    word = {"request_id": task_id, "response": "yes"}
    more = {"hold_id": asked["hold_id"]} if names_hold else {}
    async with AsyncExitStack() as opened:
        if not is_later:
            person = await opened.enter_async_context(bridge_of(rob))
            await person.next("publish", task_id=task_id)
        answered = await asyncio.to_thread(anna.post, "/agent/hitl/respond", word)
        assert answered.status_code == 200
        if is_later:
            person = await opened.enter_async_context(bridge_of(rob))
        else:
            await person.next("answer", task_id=task_id)
        await person.send(type="answer", task_id=task_id, response="no", **more)
        error = await person.next("error", task_id=task_id)
    assert (error["code"], error["status"]) == ("already_decided", 409)
    assert error["winning_decision_id"] == answered.json()["decision_id"]
    told = await asyncio.to_thread(refused_decisions, anna, asked["execution_id"])
    assert [(event["code"], event["by"]) for event in told] == [("already_decided", "rob")]


async def test_agent_may_not_answer_its_own_question_that_it_asked_elsewhere(bot: Caller) -> None:
    task_id = fresh()
    hold_id = bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?"}).json()["hold_id"]
    async with bridge_of(bot) as agent:
        for more in ({}, {"hold_id": hold_id}):
            await agent.send(type="answer", task_id=task_id, response="yes", **more)
            assert (await agent.next("error", task_id=task_id))["code"] == "not_authorised"


@pytest.mark.parametrize("is_rejected", [False, True])
async def test_agent_that_publishes_a_closed_question_again_is_told_how_it_ended(
    bot: Caller, anna: Caller, is_rejected: bool
) -> None:
    task_id = fresh()
    word: dict[str, Any] = (
        {"response": None, "feedback": "ask the owner"} if is_rejected else {"response": "yes"}
    )
    async with bridge_of(bot) as agent:
        await agent.send(type="publish", task_id=task_id, prompt="Go on?")
        await agent.next("published", task_id=task_id)
    answered = await asyncio.to_thread(anna.post, "/agent/hitl/respond", {"request_id": task_id, **word})
    assert answered.status_code == 200, answered.text
    async with bridge_of(bot) as agent:
        await agent.send(type="publish", task_id=task_id, prompt="Go on?")
        await agent.next("published", task_id=task_id)
        told = await agent.next_of("answer", "closed", task_id=task_id)
    ended = {"type": "closed", "task_id": task_id, "response": None}
    assert told == (
        {**ended, "status": "rejected", "feedback": "ask the owner"}
        if is_rejected
        else {"type": "answer", "task_id": task_id, "response": "yes"}
    )


async def test_answer_sent_again_is_the_same_answer(bot: Caller, anna: Caller) -> None:
    task_id = fresh()
    bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?"})
    for _ in range(2):
        async with bridge_of(anna) as person:
            await person.send(type="answer", task_id=task_id, response="yes")
            await person.next("answered", task_id=task_id)
    word = {"request_id": task_id, "response": "yes"}
    assert (await asyncio.to_thread(anna.post, "/agent/hitl/respond", word)).status_code == 200


async def test_answer_to_a_closed_question_is_never_that_to_another_agents(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    """Its own question was answered a moment ago; one of this task id that another agent has asked is still open."""
    task_id = fresh()
    rival = doors.caller("rival", "agent", agent="rival")
    async with bridge_of(anna) as person:
        for asker in (bot, rival):
            body = {"request_id": task_id, "question": "Go on?"}
            assert (await asyncio.to_thread(asker.post, "/v1/requests", body)).status_code == 201
        shown = [(await person.next("publish", task_id=task_id))["hold_id"] for _ in range(2)]
        await person.send(type="answer", task_id=task_id, response="yes", hold_id=shown[0])
        await person.next("answer", task_id=task_id)
        await person.send(type="answer", task_id=task_id, response="no")
        assert (await person.next("error", task_id=task_id))["code"] == "id_reused"
        await person.send(type="answer", task_id=task_id, response="no", hold_id=shown[0])
        assert (await person.next("error", task_id=task_id))["code"] == "already_decided"
        await person.send(type="answer", task_id=task_id, response="no", hold_id=shown[1])
        assert (await person.next("answer", task_id=task_id))["response"] == "no"


async def test_ping_is_answered(bot: Caller) -> None:
    async with bridge_of(bot) as agent:
        await agent.send(type="ping", ref="p1")
        assert (await agent.next("pong"))["ref"] == "p1"


@pytest.mark.parametrize("path", ["/human-bridge", "/v1/ws"])
async def test_subprotocols_that_nobody_here_speaks_are_ignored(bot: Caller, path: str) -> None:
    headers = {"Authorization": f"Bearer {bot.token}"}
    offered = [Subprotocol("chat.v9"), Subprotocol("json")]
    url = bot.url.replace("http", "ws", 1) + path
    async with connect(url, additional_headers=headers, subprotocols=offered) as connection:
        assert connection.subprotocol is None
        assert json.loads(await connection.recv())["type"] == "authenticated"


async def test_question_that_expires_is_closed(bot: Caller, anna: Caller) -> None:
    task_id = fresh()
    async with bridge_of(anna) as person:
        bot.post("/v1/requests", {"request_id": task_id, "question": "Quick?", "timeout_seconds": 0.5})
        await person.next("publish", task_id=task_id)
        assert (await person.next("closed", task_id=task_id))["status"] == "expired"


async def test_question_whose_task_id_another_agent_chose_too_is_answered_by_its_hold(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    task_id = fresh()
    rival = doors.caller("rival", "agent", agent="rival")
    async with bridge_of(bot) as agent, bridge_of(rival) as other, bridge_of(anna) as person:
        await agent.send(type="publish", task_id=task_id, prompt="Mine?")
        await other.send(type="publish", task_id=task_id, prompt="Theirs?")
        shown = [await person.next("publish", task_id=task_id) for _ in range(2)]
        await person.send(type="answer", task_id=task_id, response="yes")
        assert (await person.next("error", task_id=task_id))["code"] == "id_reused"
        (mine,) = (one["hold_id"] for one in shown if one["prompt"] == "Mine?")
        await person.send(type="answer", task_id=task_id, response="nothing", hold_id="another")
        assert (await person.next("error", task_id=task_id))["code"] == "not_found"
        await person.send(type="answer", task_id=task_id, response="yes", hold_id=mine)
        await person.next("answered", task_id=task_id)
        assert (await agent.next("answer", task_id=task_id))["response"] == "yes"


async def test_what_a_client_may_not_do_is_refused(doors: Doors, bot: Caller, anna: Caller) -> None:
    task_id = fresh()
    stranger = doors.caller("sam", "reviewer", tenant="other")
    async with bridge_of(bot) as agent, bridge_of(anna) as person, bridge_of(stranger) as other:
        await agent.send(type="publish", task_id=task_id, prompt="Go on?")
        await person.next("publish", task_id=task_id)
        await other.send(type="answer", task_id=task_id, response="yes")
        assert (await other.next("error", task_id=task_id))["code"] == "not_found"
        await agent.next("published", task_id=task_id)
        await agent.send(type="answer", task_id=task_id, response="yes")
        assert (await agent.next("error", task_id=task_id))["code"] == "not_authorised"
        await agent.send(type="publish", task_id=task_id, prompt="Another?")
        assert (await agent.next("error", task_id=task_id))["code"] == "id_reused"
        for wrong, code in (
            ({"type": "publish", "prompt": ""}, "invalid"),
            ({"type": "publish", "prompt": "?", "x": 1}, "invalid"),
            ({"type": "publish", "prompt": "?", "task_id": "a/b"}, "invalid"),
            ({"type": "answer", "task_id": task_id}, "invalid"),
            ({"type": "answer", "task_id": "a/b", "response": "yes"}, "invalid"),
            ({"type": "decision", "hold_id": "h"}, "invalid"),
            ({"type": "publish", "prompt": "x" * 300_000}, "invalid"),
        ):
            await person.send(**wrong)
            assert (await person.next("error"))["code"] == code, wrong
        await person.send(type="publish", prompt="Who asks?")
        assert "use a token that was issued for the agent that asks" in (await person.next("error"))["detail"]
        await person.connection.send("{")
        assert (await person.next("error"))["code"] == "malformed"
        await person.send(type="answer", task_id=task_id, response="yes")
        await person.next("answered", task_id=task_id)


async def test_variables_are_not_published_to_a_chat(bot: Caller, anna: Caller) -> None:
    sealed, after = fresh(), fresh()
    async with bridge_of(anna) as person:
        body = {"request_id": sealed, "kind": "env_var", "question": "Key?", "fields": ["KEY"]}
        assert bot.post("/v1/requests", body).status_code == 201
        assert bot.post("/v1/requests", {"request_id": after, "question": "Next?"}).status_code == 201
        async with asyncio.timeout(WITHIN_S):
            while (message := json.loads(await person.connection.recv())).get("task_id") != after:
                assert message.get("task_id") != sealed


async def test_question_is_published_to_whom_it_is_delegated_and_withdrawn_when_it_is_handed_on(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    """Neither may read the project: they see what they are asked."""
    task_id, (ben, carl) = fresh(), [doors.caller(name, "treasurer") for name in ("ben", "carl")]
    hold_id = bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?"}).json()["hold_id"]
    async with bridge_of(ben) as first, bridge_of(carl) as second:
        for delegate, bridge in (("ben", first), ("carl", second)):
            handed = await asyncio.to_thread(anna.post, f"/v1/holds/{hold_id}/delegate", {"to": delegate})
            assert handed.status_code == 200, handed.text
            assert (await bridge.next("publish", task_id=task_id))["prompt"] == "Go on?"
        assert (await first.next("closed", task_id=task_id))["status"] == "withdrawn"
        await second.send(type="answer", task_id=task_id, response="yes")
        assert (await second.next("answer", task_id=task_id))["response"] == "yes"


async def test_connection_that_follows_as_many_questions_as_it_can_asks_no_more(
    bot: Caller, anna: Caller, monkeypatch: pytest.MonkeyPatch, doors: Doors
) -> None:
    """It would never get their answers."""
    monkeypatch.setattr("gateway.sockets.bridge_messages.FOLLOWED_MAX", 2)
    asked = [fresh() for _ in range(3)]
    async with (
        another_gateway(doors) as url,
        bridge_of(Caller(url, bot.token, bot.client)) as agent,
        bridge_of(anna) as person,
    ):
        for task_id in asked[:2]:
            await agent.send(type="publish", task_id=task_id, prompt="Go on?")
        await agent.send(type="publish", task_id=asked[2], prompt="Go on?")
        error = await agent.next("error", task_id=asked[2])
        assert (error["code"], error["retry_after"]) == ("quota", 60)
        for task_id in asked[:2]:
            await agent.next("published", task_id=task_id)
            await person.next("publish", task_id=task_id)
            await person.send(type="answer", task_id=task_id, response="yes")
            await agent.next("answer", task_id=task_id)
        await agent.send(type="publish", task_id=asked[2], prompt="Go on?")
        await agent.next("published", task_id=asked[2])
