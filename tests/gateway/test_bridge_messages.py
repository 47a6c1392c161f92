"""The questions that the human bridge shows a person: all that they may see, however many are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import pytest

from gateway.sockets import bridge_messages
from gateway.sockets.bridge_messages import BridgeMessages
from gateway.sockets.session import HIDDEN
from gateway.sockets.snapshots import ITEMS_MAX, Shown, snapshot_frames
from tests.gateway.facts import new_live, new_work

OWNER = ("acme", "anna")
SUBSCRIBE = {"type": "subscribe", "channels": ["holds"]}
BYTES_MAX = 8 * 1024 * 1024
Json = dict[str, Any]


def hold(number: int, **more: Any) -> Json:
    """An open question."""
    return {
        "request_id": f"t{number}",
        "hold_id": f"h{number}",
        "execution_id": f"e{number}",
        "status": "open",
        "kind": "clarification",
        "question": f"Question {number}?",
        "options": [],
        "asks": None,
        "fields": [],
        "decision_type": "",
        "input_schema": {},
        "deadline_at": "2026-11-28T12:00:00Z",
        **more,
    }


def held_call(number: int) -> Json:
    return hold(number, request_id="", kind="permission")


def answered(question: Json) -> Json:
    decision = {"decision": "respond", "feedback": ""}
    return {
        **question,
        "type": "hold_resolved",
        "status": "resolved",
        "decision": decision,
        "response": "yes",
    }


def person() -> BridgeMessages:
    """A person's client whose bridge has asked for the open holds."""
    messages = BridgeMessages()
    told(messages, {"type": "authenticated", "roles": ["reviewer"], "subject": "anna"})
    assert messages.own.popleft() == SUBSCRIBE
    return messages


def told(messages: BridgeMessages, *received: Json) -> list[Json]:
    return [one for message in received for one in messages.to_client(message)]


def published(messages: Iterable[Json]) -> list[str]:
    return [message["task_id"] for message in messages if message["type"] == "publish"]


async def snapshot(messages: BridgeMessages, holds: list[Json], **more: Any) -> list[Json]:
    """What the client is told of a snapshot of these holds."""
    live, _ = new_live()
    shown = messages.view(Shown("holds", holds, dict, **more))
    frames = await snapshot_frames([shown], live.position, BYTES_MAX, new_work(), OWNER)
    return told(messages, *map(orjson.loads, frames))


async def everything(messages: BridgeMessages, holds: list[Json]) -> list[Json]:
    """What the client is told until the bridge asks for no further snapshot."""
    found = await snapshot(messages, holds)
    while messages.own:
        assert messages.own.popleft() == SUBSCRIBE
        found += await snapshot(messages, holds)
    return found


async def test_every_open_question_is_published_once_however_many_are_open() -> None:
    holds = [hold(number) for number in range(2 * ITEMS_MAX + 500)]
    found = await everything(person(), holds)
    assert published(found) == [one["request_id"] for one in holds]
    assert {message["type"] for message in found} == {"publish"}


async def test_questions_are_published_behind_any_number_of_held_calls() -> None:
    calls = [held_call(number) for number in range(ITEMS_MAX)]
    secret = hold(ITEMS_MAX, kind="env_var")
    messages = person()
    found = await snapshot(messages, [*calls, secret, hold(1_001)])
    assert published(found) == ["t1001"]
    assert not messages.own


async def test_what_the_person_may_not_see_is_not_published() -> None:
    found = await snapshot(
        person(), [hold(number) for number in range(3)], sees=lambda row: row["hold_id"] != "h1"
    )
    assert published(found) == ["t0", "t2"]


async def test_what_comes_and_ends_between_two_snapshots_is_told_once() -> None:
    messages = person()
    holds = [hold(number) for number in range(ITEMS_MAX + 2)]
    await snapshot(messages, holds[:-1])
    new, gone = holds[-1], holds[-2]
    found = told(messages, {**new, "type": "hitl_requested"}, answered(gone), answered(holds[0]))
    found += await everything(messages, [new, *holds[1:-2]])
    assert [message["type"] for message in found] == ["publish", "answer"]
    assert published(found) == [new["request_id"]]


async def test_question_that_had_no_room_in_a_snapshot_has_its_end_told() -> None:
    messages = person()
    holds = [hold(number) for number in range(ITEMS_MAX + 1)]
    await everything(messages, holds)
    assert told(messages, answered(holds[-1])) == [
        {"type": "answer", "task_id": holds[-1]["request_id"], "response": "yes"}
    ]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_messages, "SHOWN_MAX", 4)
    monkeypatch.setattr(bridge_messages, "LOOK_FOR", 2)


async def test_more_than_is_kept_in_memory_is_said_and_follows_as_others_end(few: None) -> None:
    messages, holds = person(), [hold(number) for number in range(10)]
    found = await everything(messages, holds)
    assert published(found) == ["t0", "t1", "t2", "t3"]
    assert found[-1] == {"type": "more", "shown": 4}
    # One that comes meanwhile has its turn behind the others, and nothing is said again.
    holds.append(hold(10))
    assert told(messages, {**holds[10], "type": "hitl_requested"}) == []
    shown: list[str] = published(found)
    while shown:
        number = int(shown.pop(0)[1:])
        told(messages, answered(holds[number]))
        holds[number] = {**holds[number], "status": "resolved"}
        while messages.own:
            assert messages.own.popleft() == SUBSCRIBE
            shown += published(await snapshot(messages, [one for one in holds if one["status"] == "open"]))
        assert len(shown) <= 4
    assert all(one["status"] == "resolved" for one in holds)


async def test_exactly_as_many_as_are_kept_are_not_said_to_be_more(few: None) -> None:
    found = await everything(person(), [hold(number) for number in range(4)])
    assert [message["type"] for message in found] == ["publish"] * 4


async def test_after_lost_messages_everything_is_published_again(few: None) -> None:
    messages, holds = person(), [hold(number) for number in range(3)]
    await everything(messages, holds)
    told(messages, {"type": "resync_required"})
    assert messages.own.popleft() == SUBSCRIBE
    assert published(await everything(messages, holds)) == ["t0", "t1", "t2"]


async def test_snapshot_that_is_refused_is_asked_for_again(few: None) -> None:
    messages, holds = person(), [hold(number) for number in range(3)]
    await snapshot(messages, holds[:2])
    (error,) = told(messages, {"type": "error", "code": "quota", "detail": "slow down", "ref": None})
    assert error["code"] == "quota"
    told(messages, answered(holds[0]))
    assert list(messages.own) == [SUBSCRIBE]


@pytest.mark.parametrize("change", ["delegated", "escalated", "vote"])
async def test_question_that_a_person_sees_from_a_change_on_is_published_and_its_end_told(
    change: str,
) -> None:
    messages = person()
    await snapshot(messages, [])
    changed = {**hold(1), "type": "hold_changed", "change": change}
    assert published(told(messages, changed, changed)) == ["t1"]
    assert told(messages, answered(hold(1))) == [{"type": "answer", "task_id": "t1", "response": "yes"}]


@pytest.mark.parametrize("change", [held_call(1), hold(1, kind="env_var")], ids=["call", "variables"])
async def test_change_of_what_the_bridge_does_not_show_is_not_published(change: Mapping[str, Any]) -> None:
    assert told(person(), {**change, "type": "hold_changed", "change": "delegated"}) == []


async def test_question_that_was_handed_on_is_closed_for_whoever_was_shown_it() -> None:
    messages = person()
    hidden = {"type": HIDDEN, "hold_id": "h1", "request_id": "t1"}
    assert told(messages, hidden) == []
    delegated = {**hold(1), "type": "hold_changed", "change": "delegated"}
    told(messages, delegated)
    assert told(messages, hidden, hidden) == [
        {"type": "closed", "task_id": "t1", "status": "withdrawn", "feedback": None, "response": None}
    ]
    assert told(messages, answered(hold(1))) == []
    assert published(told(messages, delegated)) == ["t1"]


def test_question_is_sent_with_all_that_a_person_has_to_see_of_it() -> None:
    asks = {"tool": "shell", "action": "rm -rf /data", "risk": "high", "remember": True}
    question = hold(1, kind="permission", asks=asks, type="hitl_requested")
    (sent,) = told(person(), question)
    assert (sent["type"], sent["task_id"], sent["prompt"]) == ("publish", "t1", "Question 1?")
    assert sent["asks"] == asks
    assert sent.keys() - {"type", "task_id", "prompt"} == {
        *("kind", "options", "hold_id", "asks", "fields", "decision_type", "input_schema", "deadline_at")
    }


def test_default_that_took_effect_is_told_with_the_end_of_its_question() -> None:
    messages = person()
    told(messages, {**hold(1), "type": "hitl_requested"})
    ended = {**hold(1), "type": "hold_resolved", "status": "expired", "decision": None, "response": "green"}
    (sent,) = told(messages, ended)
    assert (sent["type"], sent["status"], sent["response"]) == ("closed", "expired", "green")
