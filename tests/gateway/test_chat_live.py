"""Chat over SSE: a message, a worker of the agent, and the stream of its answer, on a whole stack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from placet import AsyncPlacet, AsyncTurn, ChatEvent
from placet.canonical import canonical, sha256_hex
from placet.ids import call_id
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

Function = Callable[[AsyncTurn], Any]


@asynccontextmanager
async def serving(doors: Doors, name: str, function: Function, **more: Any) -> AsyncIterator[AsyncPlacet]:
    token = doors.token(f"{name}-worker", "agent", agent=name)
    async with AsyncPlacet(doors.url, token=token, agent=name) as client:
        task = asyncio.create_task(client.serve({name: function}, **more))
        try:
            yield client
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def reading(ran: list[str]) -> Function:
    """The function of an agent that reads one file through the gate, and notes that it ran."""

    async def work(turn: AsyncTurn) -> str:
        @turn.run.gated(tool="read_file")
        async def read_file(path: str) -> str:
            ran.append(path)
            return path

        return str(await read_file("a.txt"))

    return work


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


async def answered(events: AsyncIterator[ChatEvent]) -> list[ChatEvent]:
    return [event async for event in events]


async def test_message_is_answered_by_the_agents_function_and_streamed(doors: Doors, anna: Caller) -> None:
    name = fresh("echo")

    async def echo(turn: AsyncTurn) -> str:
        await turn.say("Let me see.")
        told = [message.text for message in await turn.history() if message.role == "user"]
        return f"{turn.sent_by} said {told}"

    async with serving(doors, name, echo) as client:
        events = await answered(client.conversations.chat("hello"))
        assert [event.type for event in events] == ["message", "message", "complete"]
        assert events[0].body["text"] == "Let me see."
        conversation_id = events[0].body["conversation_id"]
        again = await answered(client.conversations.chat("again", conversation_id=conversation_id))
        assert again[-2].body["text"] == f"{name}-worker said ['hello', 'again']"
        page = await client.conversations.messages(conversation_id)
        assert [(message.role, message.number) for message in page] == [
            ("user", 0),
            ("assistant", 1),
            ("assistant", 2),
        ] * 2
        assert all(event.cursor for event in events)


async def test_question_is_asked_in_the_chat_and_continue_chat_goes_on(doors: Doors, anna: Caller) -> None:
    name = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        where = await turn.hitl.request_decision(
            question="Where?", options=["staging", "production"], timeout_seconds=300
        )
        return f"deployed to {where}"

    async with (
        serving(doors, name, deploy, wait_s=0) as client,
        AsyncPlacet(doors.url, token=anna.token) as person,
    ):
        stream = client.conversations.chat("deploy it")
        asked = await anext(stream)
        assert (asked.type, asked.body["question"]) == ("hitl_requested", "Where?")
        found = person.conversations.continue_chat(asked.body["request_id"], "staging")
        mine = await answered(found)
        theirs = await answered(stream)
        assert [event.type for event in theirs] == ["hitl_resolved", "message", "complete"]
        assert [event.type for event in mine][-2:] == ["message", "complete"]
        assert theirs[-2].body["text"] == mine[-2].body["text"] == "deployed to staging"


def raw(doors: Doors, caller: Caller, body: dict[str, Any], **headers: str) -> list[tuple[str, str, Any]]:
    """The events of one connection: id, name and data."""
    own = {"authorization": f"Bearer {caller.token}", "content-type": "text/plain", **headers}
    found: list[tuple[str, str, Any]] = []
    with httpx.stream(
        "POST", f"{doors.url}/agent/chat", content=json.dumps(body), headers=own, timeout=30
    ) as r:
        assert r.status_code == 200, r.read()
        assert r.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in r.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" not in fields:
                # A comment, which keeps the connection open.
                fields = {}
            else:
                found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
                fields = {}
    return found


async def test_stream_resumes_after_the_last_event(doors: Doors) -> None:
    name = fresh("talker")
    caller = doors.caller("web", "agent", agent=name)

    async def talk(turn: AsyncTurn) -> str:
        for number in range(5):
            await turn.say(f"part {number}")
        return "end"

    async with serving(doors, name, talk):
        body = {"message": "talk", "message_id": "m1", "conversation_id": fresh("c"), "agent": name}
        events = await asyncio.to_thread(raw, doors, caller, body)
        texts = [data.get("text") for _, kind, data in events if kind == "message"]
        assert texts == [*(f"part {number}" for number in range(5)), "end"]
        for index in range(len(events) - 1):
            rest = await asyncio.to_thread(raw, doors, caller, body, **{"last-event-id": events[index][0]})
            assert [event[1:] for event in rest][: len(events)] == [
                event[1:] for event in events[index + 1 :]
            ]
        again = await asyncio.to_thread(raw, doors, caller, body)
        assert [data.get("text") for _, kind, data in again if kind == "message"] == texts
        assert again[-1][1] == "complete"


async def test_data_of_an_event_is_one_line_for_every_reader(doors: Doors) -> None:
    name, text = fresh("lines"), "a\u2028b\u2029c\x85d\x0be\x1cf\r\ng — é"
    caller = doors.caller("web", "agent", agent=name)

    async def say(turn: AsyncTurn) -> str:
        return text

    async with serving(doors, name, say):
        body = {"message": text, "message_id": fresh("m"), "conversation_id": fresh("c"), "agent": name}
        for _ in range(2):
            events = await asyncio.to_thread(raw, doors, caller, body)
            assert [data.get("text") for _, _, data in events] == [text, text]
        answer = await asyncio.to_thread(caller.post, "/agent/chat", body)
        assert "— é" in answer.text


async def test_two_clients_of_one_conversation_each_see_their_own_answer(doors: Doors) -> None:
    name = fresh("queue")

    async def answer(turn: AsyncTurn) -> str:
        await turn.say(f"working on {turn.message}")
        return f"answer to {turn.message}"

    token = doors.token(f"{name}-web", "agent", agent=name)
    async with serving(doors, name, answer) as client, AsyncPlacet(doors.url, token=token) as other:
        conversation_id = fresh("c")
        mine = asyncio.create_task(
            answered(client.conversations.chat("one", conversation_id=conversation_id, agent=name))
        )
        theirs = asyncio.create_task(
            answered(other.conversations.chat("two", conversation_id=conversation_id, agent=name))
        )
        for message, events in (("one", await mine), ("two", await theirs)):
            texts = [event.body["text"] for event in events if event.type == "message"]
            assert texts == [f"working on {message}", f"answer to {message}"]
            assert events[-1].type == "complete"


async def test_failure_of_the_agents_function_is_an_error_event(doors: Doors) -> None:
    name = fresh("failing")

    async def fail(turn: AsyncTurn) -> str:
        raise ValueError("the disk is full")

    async with serving(doors, name, fail) as client:
        events = await answered(client.conversations.chat("hello"))
        assert [(event.type, event.body["code"]) for event in events] == [("error", "failed")]
        assert events[0].body["detail"] == "ValueError: the disk is full"


async def test_turn_of_a_worker_that_stops_is_taken_on_by_the_next_and_nothing_runs_twice(
    doors: Doors,
) -> None:
    name, ran, begun = fresh("stopped"), list[str](), asyncio.Event()
    hang = asyncio.Event()

    async def work(turn: AsyncTurn) -> str:
        @turn.run.gated(tool="read_file")
        async def read_file(path: str) -> str:
            ran.append(path)
            return f"content of {path}"

        await turn.say("first")
        found = await read_file("a.txt")
        begun.set()
        if not hang.is_set():
            await asyncio.sleep(60)
        await turn.say("second")
        return str(found)

    async with serving(doors, name, work) as client:
        stream = asyncio.create_task(answered(client.conversations.chat("go")))
        await begun.wait()
        hang.set()
    async with serving(doors, name, work):
        events = await stream
    assert [event.body["text"] for event in events if event.type == "message"] == [
        "first",
        "second",
        "content of a.txt",
    ]
    assert ran == ["a.txt"]


async def test_equal_calls_in_two_turns_are_two_calls(doors: Doors) -> None:
    name, ran = fresh("twice"), list[str]()

    async with serving(doors, name, reading(ran)) as client:
        first = await answered(client.conversations.chat("one"))
        conversation_id = first[-1].body["conversation_id"]
        await answered(client.conversations.chat("two", conversation_id=conversation_id))
    assert ran == ["a.txt", "a.txt"]


async def test_turn_waits_for_a_person_where_a_lost_worker_left_a_call_of_unknown_outcome(
    doors: Doors, anna: Caller
) -> None:
    name, ran = fresh("lost"), list[str]()
    lost = doors.caller(f"{name}-worker", "agent", agent=name)
    execution_id = lost.execution()
    assert lost.post(f"/v1/executions/{execution_id}/messages", {"message_id": "m", "text": "x"}).is_success
    # What the lost worker did: it consumed the call that the function makes, and never said how it ended.
    arguments = {"path": "a.txt"}
    named = call_id(f"{execution_id}/m", "read_file", sha256_hex(canonical(arguments)), 0)
    call = lost.propose(execution_id, "read_file", call_id=named, arguments=arguments, attempt_id="lost")
    assert call["status"] == "consumed"
    path = f"/v1/executions/{execution_id}/tool-calls/{named}"
    assert lost.post(f"{path}/result", {"attempt_id": "lost", "outcome": "unknown"}).is_success

    async with serving(doors, name, reading(ran)) as client:
        stream = asyncio.create_task(answered(client.conversations.follow(execution_id, message_id="m")))
        turn = f"/v1/executions/{execution_id}/turns/m"
        async with asyncio.timeout(30):
            while (found := (await asyncio.to_thread(lost.get, turn)).json())["status"] != "suspended":
                await asyncio.sleep(0.05)
        assert ran == []
        hold = (await asyncio.to_thread(anna.get, f"/v1/holds/{found['hold_id']}")).json()
        assert hold["cause"] == "outcome_unknown"
        decision = {"decision": "approve", "digest": hold["digest"]}
        decided = await asyncio.to_thread(anna.post, f"/v1/holds/{hold['hold_id']}/decision", decision)
        assert decided.status_code == 200
        events = await stream
    assert events[-1].type == "complete"
    assert ran == ["a.txt"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid"),
        ({"message": ""}, 422, "invalid"),
        ({"message": "x" * 16_385}, 422, "invalid"),
        ({"message": "x", "mesage": "y"}, 422, "invalid"),
        ({"message": "x", "conversation_id": "a/b"}, 422, "invalid"),
        ({"message": "x", "agent": "somebody-else"}, 403, "not_authorised"),
    ],
)
def test_bad_message_is_refused(
    doors: Doors, bot: Caller, body: dict[str, Any], status: int, code: str
) -> None:
    answer = bot.post("/agent/chat", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_conversation_of_another_agent_or_tenant_is_closed_to_others(doors: Doors, bot: Caller) -> None:
    conversation_id = bot.execution()
    other = doors.caller("other", "agent", agent="other")
    assert other.post("/agent/chat", {"message": "x", "conversation_id": conversation_id}).status_code == 403
    assert other.get(f"/agent/chat?conversation_id={conversation_id}").status_code == 403
    assert other.get(f"/v1/executions/{conversation_id}/messages").status_code == 403
    stranger = doors.caller("stranger", "reviewer", tenant="other")
    assert stranger.get(f"/agent/chat?conversation_id={conversation_id}").status_code == 404
    assert stranger.get(f"/v1/executions/{conversation_id}/messages").status_code == 404
    analyst = doors.caller("ada", "analyst")
    assert analyst.post(f"/v1/executions/{conversation_id}/messages", {"text": "x"}).status_code == 403
    claim = other.post("/v1/agents/billing/turns/claim", {"attempt_id": "a"})
    assert (claim.status_code, claim.json()["code"]) == (403, "not_authorised")


def test_stream_with_a_foreign_cursor_is_refused(doors: Doors, bot: Caller) -> None:
    conversation_id = bot.execution()
    answer = bot.get(
        f"/agent/chat?conversation_id={conversation_id}", headers={"Last-Event-ID": "not-a-cursor"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    sent = bot.post("/agent/chat", {"message": "hello"}, headers={"Last-Event-ID": "not-a-cursor"})
    for refused in (answer, sent):
        assert refused.json()["detail"].startswith("Last-Event-ID: ")


def test_answer_to_an_unknown_question_is_not_found_and_an_agents_is_refused(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    body = {"request_id": fresh("r"), "response": "yes"}
    assert anna.post("/agent/hitl/respond", body).status_code == 404
    asked = bot.post("/v1/requests", {"question": "?", "kind": "decision", "options": ["a", "b"]}).json()
    body = {"request_id": asked["request_id"], "response": "a"}
    assert bot.post("/agent/hitl/respond", body).json()["code"] == "not_authorised"
    wrong = anna.post("/agent/hitl/respond", {**body, "response": "c"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "unknown_option")
    answer = anna.post("/agent/hitl/respond", body)
    assert answer.status_code == 200
    assert (answer.json()["conversation_id"], answer.json()["message_id"]) == (asked["execution_id"], None)
    assert anna.post("/agent/hitl/respond", {**body, "response": "b"}).json()["code"] == "already_decided"
