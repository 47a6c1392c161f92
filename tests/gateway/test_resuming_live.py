"""A reader that keeps the cursor of the last message that has one, and whose connection breaks after any message."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.gateway.conftest import Caller
from tests.gateway.sockets import PATIENCE_S, Socket, open_socket
from tests.gateway.test_stream_live import messages_of, open_stream

pytestmark = [pytest.mark.stack, pytest.mark.broker]

CHANNELS = ("events", "holds")
ANSWERS = {
    "pong": {"type": "ping"},
    "error": {"type": "nonsense"},
    "reply": {"type": "claim", "ref": "nowhere", "hold_id": "nowhere"},
}
PUSHED = ("event", "tool_call_pending_review", "hold_changed", "hold_resolved")


@dataclass
class Reader:
    """Follows the published rule, and knows nothing else."""

    caller: Caller
    execution_id: str
    cursor: str | None = None
    facts: Counter[str] = field(default_factory=Counter)
    open_holds: set[str] = field(default_factory=set)

    def handle(self, message: dict[str, Any]) -> None:
        self.cursor = message.get("cursor") or self.cursor
        if message["type"] == "snapshot" and message["channel"] == "holds":
            self.open_holds |= {item["hold_id"] for item in message["items"]}
        if message.get("execution_id") != self.execution_id:
            return
        if message["type"] == "event":
            self.facts[message["event_id"]] += 1
        elif message["type"] == "hold_resolved":
            self.open_holds.discard(message["hold_id"])
        elif message["type"] in ("tool_call_pending_review", "hold_changed"):
            self.open_holds.add(message["hold_id"])

    async def subscribe(self, socket: Socket) -> None:
        resumed = {} if self.cursor is None else {"cursor": self.cursor}
        await socket.send(type="subscribe", channels=CHANNELS, **resumed)

    async def until(self, socket: Socket, kind: str) -> None:
        """Handle messages up to the first of a kind."""
        while True:
            message = await socket.receive()
            self.handle(message)
            if message["type"] == kind:
                return

    async def until_all(self, socket: Socket, expected: set[str]) -> None:
        """Handle messages until every fact has come."""
        async with asyncio.timeout(PATIENCE_S):
            while not expected <= self.facts.keys():
                self.handle(await socket.receive())


async def recorded(caller: Caller, execution_id: str) -> set[str]:
    answer = await asyncio.to_thread(caller.get, f"/v1/executions/{execution_id}/events?limit=500")
    return {item["event_id"] for item in answer.json()["items"]}


async def something_happens(bot: Caller, anna: Caller, execution_id: str) -> None:
    """A call is held, one more is held and claimed, and one is held and rejected."""
    for number in range(3):
        call = await asyncio.to_thread(bot.propose, execution_id)
        path = f"/v1/holds/{call['hold_id']}"
        if number == 1:
            await asyncio.to_thread(anna.post, f"{path}/claim", {})
        if number == 2:
            word = {"decision": "reject", "digest": call["digest"], "feedback": "no"}
            await asyncio.to_thread(anna.post, f"{path}/decision", word)


async def test_resume_after_any_last_message_loses_nothing_and_repeats_nothing(
    bot: Caller, anna: Caller
) -> None:
    execution_id = await asyncio.to_thread(bot.execution)
    reader = Reader(anna, execution_id)
    async with open_socket(anna.url, anna.token) as socket:
        await reader.subscribe(socket)
        await reader.until(socket, "snapshot")
    before = await recorded(anna, execution_id)
    # The connection before broke within the snapshot: what happens now is in none.
    for kind in ("snapshot", "authenticated", *ANSWERS, *PUSHED, *ANSWERS):
        await something_happens(bot, anna, execution_id)
        await broken_after(reader, kind)
    await something_happens(bot, anna, execution_id)
    expected = await recorded(anna, execution_id) - before
    async with open_socket(anna.url, anna.token) as socket:
        await reader.subscribe(socket)
        await reader.until_all(socket, expected)
        await socket.send(type="ping")
        await reader.until(socket, "pong")
    assert {fact: count for fact, count in reader.facts.items() if count > 1} == {}
    answer = await asyncio.to_thread(anna.get, "/v1/holds?status=open&limit=500")
    now_open = {hold["hold_id"] for hold in answer.json()["items"] if hold["execution_id"] == execution_id}
    assert now_open <= reader.open_holds


async def broken_after(reader: Reader, kind: str) -> None:
    """A connection that ends with a message of a kind: the first that comes, or the answer to what was asked."""
    async with open_socket(reader.caller.url, reader.caller.token) as socket:
        reader.handle(socket.greeting)
        if kind in ANSWERS:
            await socket.send(**ANSWERS[kind])
            await reader.until(socket, kind)
            await reader.subscribe(socket)
            await socket.send(**ANSWERS[kind])
            await reader.until(socket, kind)
        elif kind != "authenticated":
            await reader.subscribe(socket)
            await reader.until(socket, kind)


async def test_messages_without_a_subscription_have_no_cursor(bot: Caller, anna: Caller) -> None:
    execution_id = await asyncio.to_thread(bot.execution)
    async with open_socket(bot.url, bot.token) as agent:
        held = await agent.propose(execution_id, "c1", "send_money")
        word = {"decision": "reject", "digest": held["body"]["digest"], "feedback": "no"}
        await asyncio.to_thread(anna.post, f"/v1/holds/{held['body']['hold_id']}/decision", word)
        decided = await agent.next("tool_call_decided", call_id="c1")
        await agent.send(type="ping")
        pong = await agent.next("pong")
        await agent.send(type="nonsense")
        error = await agent.next("error")
    assert ["cursor" in message for message in (agent.greeting, held, decided, pong, error)] == [False] * 5
    # What a write's answer promises is in the answer itself.
    path = f"/v1/executions/{execution_id}/tool-calls/c1?after={held['body']['cursor']}"
    assert (await asyncio.to_thread(bot.get, path)).status_code == 200


async def test_answers_on_a_live_subscription_go_on_with_the_log(bot: Caller, anna: Caller) -> None:
    async with open_socket(anna.url, anna.token) as socket:
        await socket.subscribe("holds")
        execution_id = await asyncio.to_thread(bot.execution)
        await socket.send(type="ping")
        cursor = (await socket.next("pong"))["cursor"]
    async with open_socket(anna.url, anna.token) as socket:
        await socket.send(type="subscribe", channels=["events"], cursor=cursor)
        await asyncio.to_thread(bot.propose, execution_id, "read_file")
        shown = await socket.next("event", execution_id=execution_id)
    assert shown["event_type"] == "ToolCallProposed"


def test_stream_resumed_with_the_first_cursor_of_a_snapshot_has_the_events_since(
    bot: Caller, anna: Caller
) -> None:
    with open_stream(anna, "events,holds") as response:
        first = next(messages_of(response.iter_lines()))
    assert first["channel"] == "events"
    execution_id = bot.execution()
    with open_stream(anna, "events,holds", first["cursor"]) as response:
        found = []
        for message in messages_of(response.iter_lines()):
            found.append(message)
            if message.get("execution_id") == execution_id:
                break
    assert found[0]["channel"] == "holds"
    assert found[-1]["event_type"] == "ExecutionStarted"
