"""What a stream of a whole conversation begins with: what is open, and a word where not all of it had room."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sockets import snapshots
from gateway.sockets.chat import ChatEvents, open_work
from gateway.sockets.snapshots import Shown, snapshot_frames
from projections.folds.calls import call_json
from projections.folds.holds import hold_json
from tests.gateway.facts import Partition, held, key_of, new_live, new_work, proposed, started, verdict

KEY = key_of("e1")
PLENTY = 2**40
Told = tuple[str, str, dict[str, Any]]


async def opening(held_calls: int, other_calls: int, bytes_max: int) -> list[Told]:
    """The events (id, event, data) with which a stream of a conversation with so much open begins."""
    live, _ = new_live()
    partition = Partition(live)
    partition.write(KEY, "start", started())
    for n in range(held_calls):
        partition.write(
            KEY, f"ask-{n}", proposed(f"held-{n}"), verdict(f"held-{n}"), held(f"held-{n}", f"h{n}")
        )
    for n in range(other_calls):
        partition.write(KEY, f"call-{n}", proposed(f"other-{n}"))
    execution = Shown(
        "executions:e1", [live.cache.executions.get(KEY) or {}], lambda row: {"id": row["execution_id"]}
    )
    shown = [execution, *(look() for look in open_work(live.cache, KEY))]
    frames = await snapshot_frames(shown, live.position, bytes_max, new_work(), ("acme", "anna"))
    events = ChatEvents()
    return told(b"".join(map(events, frames)))


def told(stream: bytes) -> list[Told]:
    found = []
    for event in stream.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        found.append((fields.get("id", ""), fields.get("event", ""), json.loads(fields.get("data", "{}"))))
    return found


def sizes() -> tuple[int, int]:
    """The bytes of an open hold of these and of its call, about."""
    live, _ = new_live()
    Partition(live).write(KEY, "ask", started(), proposed("held-0"), verdict("held-0"), held("held-0", "h0"))
    (call,), (hold,) = (look().rows for look in open_work(live.cache, KEY))
    return len(json.dumps(hold_json(hold))), len(json.dumps(call_json(call)))


HOLD_BYTES, CALL_BYTES = sizes()


def counts(events: list[Told]) -> dict[str, int]:
    kinds = [kind for _, kind, _ in events]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def left_out(events: list[Told]) -> list[dict[str, Any]]:
    return [data for _, kind, data in events if kind == "more"]


async def test_no_call_displaces_a_question_and_the_reader_is_told_of_the_calls_left_out() -> None:
    # Fewer calls than holds cannot be: the calls of three holds, and forty that hold nothing.
    events = await opening(3, 40, 4 * HOLD_BYTES + 10 * CALL_BYTES)
    assert counts(events)["hitl_requested"] == 3
    assert 0 < counts(events)["tool_call"] < 43
    assert left_out(events) == [{"event": "tool_call", "shown": counts(events)["tool_call"], "total": 43}]
    # Only the last event of all has an id.
    assert [bool(cursor) for cursor, *_ in events] == [False] * (len(events) - 1) + [True]


async def test_questions_left_out_for_want_of_room_are_told_with_the_id_of_the_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each row is a part of its own.
    monkeypatch.setattr(snapshots, "PART_MAX_BYTES", 1)
    events = await opening(20, 0, 10 * HOLD_BYTES)
    shown = counts(events)["hitl_requested"]
    assert 5 < shown < 20
    assert left_out(events) == [
        {"event": "tool_call", "shown": 0, "total": 20},
        {"event": "hitl_requested", "shown": shown, "total": 20},
    ]
    assert (events[-1][1], [bool(cursor) for cursor, *_ in events]) == (
        "more",
        [*[False] * (len(events) - 1), True],
    )
    # Those that wait longest are shown.
    assert [data["hold_id"] for _, kind, data in events if kind == "hitl_requested"] == [
        f"h{n}" for n in range(shown)
    ]


async def test_one_call_without_room_is_told_and_refuses_no_stream() -> None:
    events = await opening(1, 0, HOLD_BYTES + CALL_BYTES // 2)
    assert counts(events) == {"more": 1, "hitl_requested": 1}
    assert left_out(events) == [{"event": "tool_call", "shown": 0, "total": 1}]


async def test_nothing_is_told_where_all_has_room() -> None:
    assert left_out(await opening(3, 3, PLENTY)) == []
    ((place, kind, _),) = await opening(0, 0, PLENTY)
    assert (bool(place), kind) == (True, "")


@given(st.integers(0, 8), st.integers(0, 8), st.integers(200, 20 * 3_000))
async def test_shown_and_told_together_are_all_that_is_open(holds: int, calls: int, bytes_max: int) -> None:
    events = await opening(holds, calls, bytes_max)
    told_of = {data["event"]: (data["shown"], data["total"]) for data in left_out(events)}
    for kind, total in (("hitl_requested", holds), ("tool_call", holds + calls)):
        shown = counts(events).get(kind, 0)
        assert told_of.get(kind, (total, total)) == (shown, total)
    if counts(events).get("tool_call"):
        assert counts(events).get("hitl_requested", 0) == holds
