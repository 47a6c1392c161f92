"""The turns of conversations: how workers take them on, give them back and lose them, on a whole stack."""

from __future__ import annotations

import asyncio

import pytest

from placet import AsyncTurn
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import decide, open_hold
from tests.gateway.test_chat_live import answered, fresh, raw, serving

pytestmark = [pytest.mark.stack, pytest.mark.broker]


async def test_held_call_frees_its_worker_and_the_turn_goes_on_once_it_is_approved(
    doors: Doors, anna: Caller
) -> None:
    name, paid = fresh("payer"), list[float]()

    async def pay(turn: AsyncTurn) -> str:
        if turn.message == "hello":
            return "hi"

        @turn.run.gated(tool="send_money")
        async def send_money(amount: float) -> float:
            paid.append(amount)
            return amount

        return f"paid {await send_money(7.5)}"

    async with serving(doors, name, pay, wait_s=0, concurrency=1) as client:
        stream = client.conversations.chat("pay")
        asked = await anext(event async for event in stream if event.type == "hitl_requested")
        other = await answered(client.conversations.chat("hello"))
        assert other[-2].body["text"] == "hi", "the only worker is free"
        hold = await asyncio.to_thread(open_hold, anna, name, tool="send_money")
        assert (hold["hold_id"], paid) == (asked.body["hold_id"], [])
        await asyncio.to_thread(decide, anna, hold, decision="approve")
        found = await answered(stream)
        assert (found[-1].type, found[-2].body["text"], paid) == ("complete", "paid 7.5", [7.5])


async def test_message_ids_are_of_their_conversation(doors: Doors) -> None:
    name = fresh("ids")

    async def echo(turn: AsyncTurn) -> str:
        return f"{turn.message} in {turn.conversation_id}"

    async with serving(doors, name, echo):
        for text in ("one", "two"):
            user = doors.caller(f"user-{text}", "agent", agent=name)
            conversation = fresh("c")
            body = {"message": text, "message_id": "m", "conversation_id": conversation, "agent": name}
            events = await asyncio.to_thread(raw, doors, user, body)
            assert [what for _, what, _ in events] == ["message", "complete"]
            assert events[0][2]["text"] == f"{text} in {conversation}"


def test_turns_by_hand(doors: Doors) -> None:
    name = fresh("hand")
    worker, rival = doors.caller("w", "agent", agent=name), doors.caller("v", "agent", agent=name)
    execution_id = worker.execution()
    turn = worker.post(f"/v1/executions/{execution_id}/messages", {"message_id": "m", "text": "hello"})
    assert (turn.status_code, turn.json()["status"]) == (201, "waiting")
    again = worker.post(f"/v1/executions/{execution_id}/messages", {"message_id": "m", "text": "hello"})
    assert again.status_code == 200
    other = worker.post(f"/v1/executions/{execution_id}/messages", {"message_id": "m", "text": "other"})
    assert (other.status_code, other.json()["code"]) == (409, "id_reused")

    claimed = worker.post(f"/v1/agents/{name}/turns/claim", {"attempt_id": "a1"}).json()["turn"]
    assert (claimed["turn_id"], claimed["status"], claimed["attempt_id"]) == ("m", "claimed", "a1")
    repeat = worker.post(f"/v1/agents/{name}/turns/claim", {"attempt_id": "a1"}).json()["turn"]
    assert repeat["turn_id"] == "m"
    assert rival.post(f"/v1/agents/{name}/turns/claim", {"attempt_id": "b1"}).json()["turn"] is None

    path = f"/v1/executions/{execution_id}/turns/m"
    said = {"attempt_id": "a1", "number": 1, "text": "well"}
    assert rival.post(f"{path}/reply", said).json()["code"] == "already_consumed"
    assert worker.post(f"{path}/reply", said).json()["replies"] == 1
    assert worker.post(f"{path}/reply", {**said, "text": "", "number": 2}).json()["code"] == "invalid"
    assert (
        worker.post(f"{path}/yield", {"attempt_id": "a1", "hold_id": "nowhere"}).json()["code"] == "invalid"
    )
    assert worker.post(f"{path}/yield", {"attempt_id": "a1"}).json()["status"] == "waiting"
    second = rival.post(f"/v1/agents/{name}/turns/claim", {"attempt_id": "b2"}).json()["turn"]
    assert (second["claims"], second["replies"]) == (2, 1)
    assert worker.post(f"{path}/end", {"attempt_id": "a1"}).json()["code"] == "already_consumed"
    assert rival.post(f"{path}/end", {"attempt_id": "b2", "reply": "bye"}).json()["status"] == "completed"
    assert rival.post(f"{path}/renew", {"attempt_id": "b2"}).json()["code"] == "not_open"
    assert worker.get(path).json()["status"] == "completed"
    texts = [item["text"] for item in worker.get(f"/v1/executions/{execution_id}/messages").json()["items"]]
    assert texts == ["hello", "well", "bye"]


def test_turn_that_an_attempt_gave_back_is_refused_to_it_once_and_given_to_another(doors: Doors) -> None:
    name = fresh("spent")
    worker, rival = doors.caller("w", "agent", agent=name), doors.caller("v", "agent", agent=name)
    execution_id = worker.execution()
    worker.post(f"/v1/executions/{execution_id}/messages", {"message_id": "m", "text": "hello"})
    claim = f"/v1/agents/{name}/turns/claim"
    assert worker.post(claim, {"attempt_id": "a"}).json()["turn"]["turn_id"] == "m"
    worker.post(f"/v1/executions/{execution_id}/turns/m/yield", {"attempt_id": "a"})
    version = worker.get(f"/v1/executions/{execution_id}").json()["version"]

    for wait in ("", "?wait=5"):
        spent = worker.post(f"{claim}{wait}", {"attempt_id": "a"})
        assert (spent.status_code, spent.json()["code"]) == (409, "already_consumed")
    assert worker.get(f"/v1/executions/{execution_id}").json()["version"] == version, "it is no event"
    assert rival.post(claim, {"attempt_id": "b"}).json()["turn"]["attempt_id"] == "b"
