from __future__ import annotations

import asyncio

import orjson
import pytest

from gateway.pushes.resyncs import Resync
from gateway.settings import Limits
from gateway.sockets.outgoing import resync_frame
from tests.gateway.facts import new_outgoing, taken


async def test_take_frames_in_order_then_waits() -> None:
    out = new_outgoing(Limits())
    out.answer(b"1")
    assert out.push(b"2")
    assert [await taken(out), await taken(out)] == [b"1", b"2"]
    waiting = asyncio.create_task(taken(out))
    await asyncio.sleep(0)
    out.answer(b"3")
    assert await waiting == b"3"


@pytest.mark.parametrize("limits", [Limits(queue_messages=2), Limits(queue_bytes=2)])
async def test_push_over_the_bound_is_turned_away_and_answers_are_not(limits: Limits) -> None:
    out = new_outgoing(limits)
    assert out.push(b"1")
    assert out.push(b"2")
    assert not out.push(b"3")
    out.answer(b"a")
    out.drop_pushes()
    assert out.push(resync_frame("c", Resync.TOO_SLOW))
    frames = [await taken(out), await taken(out)]
    assert frames[0] == b"a"
    resync = orjson.loads(frames[1] or b"")
    assert (resync["type"], resync["reason"]) == ("resync_required", "too_slow")


async def test_answer_keeps_its_cursor_only_as_long_as_what_it_covers_is_before_it() -> None:
    out = new_outgoing(Limits())
    out.answer(b'{"type":"pong"}', "c1")
    assert orjson.loads(await taken(out) or b"") == {"type": "pong", "cursor": "c1"}
    assert out.push(b"2")
    out.answer(b'{"type":"pong"}', "c2")
    out.drop_pushes()
    out.answer(b'{"type":"pong"}', "c3")
    assert [await taken(out), await taken(out)] == [b'{"type":"pong"}', b'{"type":"pong","cursor":"c3"}']
    out.discard()
    assert out.budget.bytes == 0


async def test_take_closed_gives_what_waits_then_none() -> None:
    out = new_outgoing(Limits())
    out.answer(b"1")
    out.close()
    assert await taken(out) == b"1"
    assert await taken(out) is None
