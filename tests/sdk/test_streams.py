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
