"""What a reader holds of the gateway while it is served: its place among its subject's own, and its subscriptions."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message

from gateway.metrics import Metrics
from gateway.problems import Problem
from gateway.rest.stream import stream_events
from gateway.settings import Limits
from gateway.shares.budget import Budget
from gateway.shares.open_limit import OpenLimit
from gateway.shutdown import Shutdown
from gateway.sockets import sse
from gateway.sockets.chat import ChatEvents
from gateway.sockets.sse import EventStream, Stream
from gateway.sockets.subscriptions import subscribe
from projections.folds.rows import Row
from tests.gateway.facts import (
    HELD_CALL,
    Partition,
    gate_of,
    key_of,
    new_live,
    new_outgoing,
    new_work,
    started,
)
from tests.gateway.test_hub import ANNA

LIMITS = Limits(sockets=2)
LET_IN: Any = SimpleNamespace(recheck_s=60.0, check=partial(asyncio.sleep, 0))


class Forgetful:
    """Finds a row when it is asked, and has it no longer at hand a moment later."""

    def __init__(self, row: Row) -> None:
        self.row = row

    async def read(self, subject: Any) -> Row:
        return self.row

    def at_hand(self, subject: Any) -> None:
        return None


def context_of(socket_limit: OpenLimit, channels: str = "events") -> Any:
    live, hub = new_live()
    gateway = SimpleNamespace(
        socket_limit=socket_limit,
        hub=hub,
        metrics=Metrics(),
        shutdown=Shutdown(),
        budget=Budget(LIMITS.subject_bytes, LIMITS.total_bytes),
        settings=SimpleNamespace(limits=LIMITS),
    )
    return SimpleNamespace(
        gateway=gateway,
        gate=gate_of(live=live, work=new_work()),
        actor=ANNA,
        authentication=LET_IN,
        request=SimpleNamespace(headers={}),
        query=lambda name: channels if name == "channels" else None,
        one_of=lambda parameter: None,
    )


async def served(stream: Any) -> None:
    """Serve a stream to a reader who has gone."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await asyncio.sleep(0)

    await stream({"type": "http"}, receive, send)


async def test_stream_takes_one_of_its_subjects_places_until_it_ends() -> None:
    socket_limit = OpenLimit(LIMITS.sockets, "too many")
    streams = [await stream_events(context_of(socket_limit)) for _ in range(LIMITS.sockets)]
    with pytest.raises(Problem) as refused:
        await stream_events(context_of(socket_limit))
    assert (refused.value.status, refused.value.code) == (429, "quota")

    for stream in streams:
        assert isinstance(stream, EventStream)
        await served(stream)
    assert len(socket_limit) == 0


async def test_stream_of_what_there_is_asks_for_the_logs_end_only_within_its_subjects_places() -> None:
    socket_limit, asked = OpenLimit(LIMITS.sockets, "too many"), []

    async def all_caught_up() -> None:
        asked.append(len(socket_limit))

    def of_what_there_is() -> Any:
        context = context_of(socket_limit)
        context.one_of = lambda parameter: "false"
        context.gate = SimpleNamespace(**vars(context.gate))
        context.gate.reader = SimpleNamespace(all_caught_up=all_caught_up)
        return context

    streams = [await stream_events(of_what_there_is()) for _ in range(LIMITS.sockets)]
    with pytest.raises(Problem):
        await stream_events(of_what_there_is())
    assert len(asked) == LIMITS.sockets
    for stream in streams:
        await served(stream)
    assert len(socket_limit) == 0


async def test_stream_that_is_refused_takes_no_place() -> None:
    socket_limit = OpenLimit(LIMITS.sockets, "too many")
    with pytest.raises(Problem):
        await stream_events(context_of(socket_limit, "nonsense"))
    assert len(socket_limit) == 0


async def test_subscribe_to_a_row_that_has_just_gone_is_refused_and_leaves_no_subscription() -> None:
    live, hub = new_live()
    Partition(live).write(key_of("e1"), "start", started(), *HELD_CALL)
    row = live.cache.executions.get(key_of("e1"))
    assert row is not None
    gate: Any = SimpleNamespace(live=live, reader=Forgetful(row), work=new_work())
    stream = Stream(gate, hub, ANNA, Metrics(), new_outgoing(LIMITS), LET_IN)

    with pytest.raises(Problem):
        await subscribe(hub, gate, stream, ["executions:e1"], None)
    assert stream.channels == set()


class AtHand:
    """Has the row of every subject at hand."""

    def __init__(self, row: Row) -> None:
        self.row = row

    async def read(self, subject: Any) -> Row:
        return self.row

    def at_hand(self, subject: Any) -> Row:
        return self.row


async def test_subscribe_to_more_than_can_be_shown_is_refused_and_leaves_no_subscription() -> None:
    live, hub = new_live()
    Partition(live).write(key_of("e1"), "start", started(), *HELD_CALL)
    row = live.cache.executions.get(key_of("e1"))
    assert row is not None
    gate: Any = SimpleNamespace(live=live, reader=AtHand(row), work=new_work())
    stream = Stream(gate, hub, ANNA, Metrics(), new_outgoing(Limits(queue_bytes=100)), LET_IN)

    with pytest.raises(Problem, match="subscribe to fewer") as refused:
        await subscribe(hub, gate, stream, ["executions:e1"], None)
    assert (refused.value.status, refused.value.code) == (413, "too_large")
    assert stream.channels == set()


async def test_stream_says_that_it_is_there_while_only_an_earlier_turn_has_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.0)
    out, show = new_outgoing(Limits()), ChatEvents()
    show.follow("second", is_ours=False)
    gate: Any = SimpleNamespace(work=new_work())
    nobody: Any = None
    frames: Any = sse._frames(Stream(gate, nobody, nobody, nobody, out, LET_IN, show))
    for _ in range(3):
        out.push(b'{"type":"message","cursor":"c","turn_id":"first","number":1,"text":"x"}')
        assert await anext(frames) == b": still here\n\n"
    await frames.aclose()


async def test_stream_without_messages_says_from_time_to_time_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.0)
    live, hub = new_live()
    gate: Any = SimpleNamespace(live=live, work=new_work())
    often: Any = SimpleNamespace(recheck_s=0.001, check=partial(asyncio.sleep, 0))
    stream = Stream(gate, hub, ANNA, Metrics(), new_outgoing(Limits()), often)
    frames: Any = sse._frames(stream)
    # Without a subscription its reader may have missed anything.
    assert await anext(frames) == b": still here\n\n"
    hub.subscribe(stream, ["events"])
    Partition(live).write(key_of("e1", tenant="other"), "start", started())
    assert await anext(frames) == b": still here\n\nid: %b\n\n" % live.position.cursor().encode()
    stream.behind = "as far as it has caught up"
    assert await anext(frames) == b": still here\n\nid: as far as it has caught up\n\n"
    stream.behind = None
    Partition(live).write(key_of("e1"), "start", started())
    assert (await anext(frames)).startswith(b"id: ")
    await frames.aclose()
