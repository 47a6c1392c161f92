"""Streams of server-sent events that are left before their end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import StreamingResponse

from placet import AsyncPlacet
from tests.sdk.scripted import QUICK, Asked, Scripted, serving


async def endless() -> AsyncIterator[str]:
    for number in range(10_000):
        yield f'id: {number}\nevent: message\ndata: {{"text": "{number}"}}\n\n'
        await asyncio.sleep(0.001)


async def answer(asked: Asked) -> StreamingResponse:
    return StreamingResponse(endless(), media_type="text/event-stream")


async def test_stream_lost_before_its_first_event_goes_on_from_its_place() -> None:
    async def lost_at_first(asked: Asked) -> StreamingResponse:
        event = 'id: 8\nevent: message\ndata: {"text": "hello"}\n\n'
        said = event if "last-event-id" in asked.headers else "id: 7\n\n"
        return StreamingResponse(iter([said]), media_type="text/event-stream")

    async with (
        serving(Scripted(on_http=lost_at_first)) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=QUICK) as client,
    ):
        async for event in client.conversations.follow("c"):
            assert (event.type, event.cursor) == ("message", "8")
            break
    assert [asked.headers.get("last-event-id") for asked in script.asked] == [None, "7"]


async def test_chat_that_is_left_half_way_ends_without_an_error(caplog: pytest.LogCaptureFixture) -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with (
        serving(Scripted(on_http=answer)) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=QUICK) as client,
    ):
        before = asyncio.all_tasks()
        async for event in client.conversations.chat("hello"):
            assert event.body == {"text": "0"}
            break
        gc.collect()
        async with asyncio.timeout(5):
            while left := asyncio.all_tasks() - before:
                await asyncio.wait(left, timeout=0.1)
    gc.collect()
    await asyncio.sleep(0)
    assert faults == []
    assert caplog.records == []
