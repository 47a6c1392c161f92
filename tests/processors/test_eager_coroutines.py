"""A coroutine that runs at once up to where it first waits."""

import asyncio

import pytest

from services.processors.eager_coroutines import start_eagerly


async def test_what_waits_for_nothing_has_ended_before_anything_else_runs() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("worked")

    assert start_eagerly(work()) is None
    assert done == ["worked"]


async def test_what_waits_goes_on_from_there_when_it_is_awaited() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        done.append("began")
        await first.wait()
        done.append("went on")
        await second.wait()
        done.append("ended")

    begun = start_eagerly(work())
    assert begun is not None
    waiting = asyncio.ensure_future(begun)
    assert done == ["began"]
    first.set()
    await asyncio.sleep(0)
    second.set()
    await waiting
    assert done == ["began", "went on", "ended"]


async def test_what_it_raises_reaches_the_caller_at_once_or_where_it_is_awaited() -> None:
    async def fail(*, late: bool) -> None:
        if late:
            await asyncio.sleep(0)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        start_eagerly(fail(late=False))
    begun = start_eagerly(fail(late=True))
    assert begun is not None
    with pytest.raises(ValueError, match="refused"):
        await begun


async def test_cancellation_reaches_the_coroutine_which_may_wait_for_more() -> None:
    let_go = asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await let_go.wait()
            done.append("let go")

    begun = start_eagerly(work())
    assert begun is not None
    waiting = asyncio.ensure_future(begun)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == ["let go"]
