"""One iteration over a consumer in a coroutine: waits that are cancelled, and how it ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from placet import LogEvent
from placet.consuming.iterating import Events
from tests.sdk.consuming import CAUGHT_UP, QUIET, Connection, Gateway, Kept, consumer, event, take
from tests.sdk.scripted import serving

LEFT_S = 30


async def test_wait_for_the_next_event_that_is_cancelled_loses_nothing() -> None:
    gateway = Gateway([[event(1), QUIET]])
    kept = Kept()
    async with (
        serving(gateway.script()) as script,
        aclosing(aiter(consumer(script, checkpoint=kept, follow=False))) as events,
    ):
        assert (await anext(events)).id == "id-1"
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 0.02)
        gateway.connections += [[event(2), event(3), CAUGHT_UP]]
        gateway.hang_up.set()
        assert [one.id async for one in events] == ["id-2", "id-3"]
        assert await anext(events, None) is None
    assert gateway.cursors == ["earliest", "1"]
    assert kept.cursor == "end"


async def test_event_that_came_after_the_wait_was_cancelled_is_not_handled_by_that() -> None:
    gateway, kept = Gateway([[event(1), QUIET], [event(2), QUIET]]), Kept()
    async with serving(gateway.script()) as script:
        async with aclosing(aiter(consumer(script, checkpoint=kept))) as events:
            await anext(events)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 0.02)
            gateway.hang_up.set()
            await asyncio.wait_for(gateway.left.wait(), LEFT_S)
            gateway.left.clear()
            # The second event was sent on the next connection.
            await asyncio.wait_for(gateway.left.wait(), LEFT_S)
        # The program asked for the second event, and never got it.
        assert kept.cursor == "1"
        gateway.connections += [[event(2), QUIET]]
        assert (await take(consumer(script, checkpoint=kept), 1))[0].id == "id-2"


async def test_second_task_that_waits_for_the_same_event_is_refused() -> None:
    async with (
        serving(Gateway([[QUIET]]).script()) as script,
        aclosing(aiter(consumer(script))) as events,
    ):
        first = asyncio.ensure_future(_next(events))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(events)
        first.cancel()
        await asyncio.wait((first,))


@pytest.mark.parametrize("how", ["aclosing", "bare"])
async def test_consume_that_is_cancelled_ends_its_connection(how: str) -> None:
    gateway, began = Gateway([[event(1), QUIET]]), asyncio.Event()
    async with serving(gateway.script()) as script:

        async def follow() -> None:
            if how == "bare":
                async for _ in consumer(script):
                    began.set()
            else:
                async with aclosing(aiter(consumer(script))) as events:
                    async for _ in events:
                        began.set()

        task = asyncio.create_task(follow())
        await began.wait()
        assert not gateway.left.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gateway.left.wait(), LEFT_S)


async def test_loop_that_is_left_by_break_ends_its_connection_and_saves_what_was_handled() -> None:
    sent: Connection = [event(1), event(2), event(3), QUIET]
    gateway, kept = Gateway([sent]), Kept()
    async with serving(gateway.script()) as script:
        async for one in consumer(script, checkpoint=kept):
            if one.id == "id-3":
                break
        await asyncio.wait_for(gateway.left.wait(), LEFT_S)
    assert kept.cursor == "2"


async def test_error_of_a_step_that_nobody_got_is_raised_at_the_end() -> None:
    def fail(cursor: str) -> None:
        raise OSError("the disk is full")

    async with serving(Gateway([[event(1), QUIET]]).script()) as script:
        events = aiter(consumer(script, checkpoint=Kept(on_save=fail)))
        await anext(events)
        waiting = asyncio.ensure_future(_next(events))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        with pytest.raises(OSError, match="the disk is full"):
            await events.aclose()


async def _next(events: Events) -> LogEvent:
    return await anext(events)
