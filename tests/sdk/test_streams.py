"""Streams of server-sent events that are left before their end."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from placet import AsyncPlacet, Placet, QuotaExceeded
from placet.blocking import _Stream
from placet.transport import sse
from tests.sdk.scripted import DEADLINE_S, QUICK, Asked, Scripted, serving
from tests.sdk.threaded import serving_thread

RESOLVED = 'id: r\nevent: hitl_resolved\ndata: {"request_id": "request"}\n\n'


async def endless(first: str = "") -> AsyncIterator[str]:
    yield first
    for number in range(10_000):
        yield f'id: {number}\nevent: message\ndata: {{"text": "{number}"}}\n\n'
        await asyncio.sleep(0.001)


async def answer(asked: Asked) -> Response:
    if asked.path.endswith("/respond"):
        told = {"status": "resolved", "request_id": "request", "conversation_id": "c", "message_id": "m"}
        return JSONResponse(told)
    # A stream that is followed has the answer to a question first.
    first = RESOLVED if asked.method == "GET" else ""
    return StreamingResponse(endless(first), media_type="text/event-stream")


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


LEFT_OPEN = """
import logging, sys
from placet import Placet

logging.basicConfig()
# A step that takes longer than a tenth of a second says nothing about the stream.
logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Executing"))
{program}
print("left")
"""
KEPT = """
with Placet(sys.argv[1], token="t", agent="bot") as client:
    kept = client.conversations.chat("hello")
    for event in kept:
        break
"""
WITH_ANOTHER = """
with Placet(sys.argv[1], token="t", agent="bot") as client:
    kept = client.conversations.chat("hello")
    next(kept)
    for event in client.conversations.continue_chat("request", "red"):
        break
"""
NEVER_CLOSED = """
client = Placet(sys.argv[1], token="t", agent="bot")
kept = client.conversations.chat("hello")
next(kept)
"""
FORGOTTEN = """
kept = Placet(sys.argv[1], token="t", agent="bot").conversations.chat("hello")
print([next(kept).body["text"] for _ in range(3)])
"""


@pytest.mark.parametrize("program", [KEPT, WITH_ANOTHER, NEVER_CLOSED, FORGOTTEN])
def test_stream_of_a_blocking_client_that_is_left_open_ends_with_it_in_silence(program: str) -> None:
    with serving_thread(Scripted(on_http=answer)) as script:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", LEFT_OPEN.format(program=program), script.url],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
            timeout=DEADLINE_S,
        )
    assert done.stdout.splitlines()[-1] == "left"
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ["chat", "continue_chat", "follow", "events"])
def test_stream_keeps_a_client_that_nothing_else_refers_to(kind: str) -> None:
    def stream() -> Any:
        client = Placet(script.url, token="t", agent="bot", patience=QUICK)
        talk = client.conversations
        made: dict[str, Any] = {
            "chat": lambda: talk.chat("hello"),
            "continue_chat": lambda: talk.continue_chat("request", "red"),
            "follow": lambda: talk.follow("c"),
            "events": client.events,
        }
        return made[kind]()

    with serving_thread(Scripted(on_http=answer, refuse_sockets=404)) as script:
        events = stream()
        gc.collect()
        next(events)
        gc.collect()
        next(events)
        events.close()


async def test_stream_that_its_reader_and_its_client_end_at_once_ends_once() -> None:
    ended: list[str] = []

    async def events() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    stream = _Stream(events())
    assert await asyncio.create_task(stream.next()) == 1
    await asyncio.gather(stream.end(), stream.end())
    assert ended == ["ended"]


REFUSED = {"code": "quota", "status": 429, "detail": "20 messages wait, send the next one later"}


async def test_message_that_is_refused_for_now_is_sent_again_and_then_told_why() -> None:
    async def refuse(asked: Asked) -> Response:
        return JSONResponse(REFUSED, 429, {"Retry-After": "4"})

    patience = replace(QUICK, request_s=3.0)
    async with (
        serving(Scripted(on_http=refuse)) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=patience) as client,
    ):
        with pytest.raises(QuotaExceeded, match="20 messages wait"):
            await anext(client.conversations.chat("hello"))
    # After the seconds that the gateway named, and not after QUICK's hundredths of one.
    assert len(script.asked) == 2


async def test_chat_whose_token_expires_goes_on_with_a_fresh_one() -> None:
    expired = {"code": "unauthenticated", "status": 401, "detail": "the token has expired"}
    said = 'id: 1\nevent: message\ndata: {"text": "one moment"}\n\n'
    gone = f"event: error\ndata: {json.dumps(expired)}\n\n"
    done = 'id: 2\nevent: complete\ndata: {"text": "done"}\n\n'

    async def stream(asked: Asked) -> Response:
        text = done if "last-event-id" in asked.headers else said + gone
        return StreamingResponse(iter([text]), media_type="text/event-stream")

    tokens = iter(["first", "second"])
    async with (
        serving(Scripted(on_http=stream)) as script,
        AsyncPlacet(script.url, token=lambda: next(tokens), agent="bot", patience=QUICK) as client,
    ):
        found = [event.type async for event in client.conversations.chat("hello")]
    assert found == ["message", "complete"]
    assert [asked.headers["authorization"] for asked in script.asked] == ["Bearer first", "Bearer second"]


async def test_connection_on_which_nothing_comes_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "SILENT_S", 0.2)
    held = asyncio.Event()

    async def dead(asked: Asked) -> Response:
        async def silent() -> AsyncIterator[str]:
            yield 'id: 1\nevent: message\ndata: {"text": "one moment"}\n\n'
            await held.wait()

        done = 'id: 2\nevent: complete\ndata: {"text": "done"}\n\n'
        body = iter([done]) if "last-event-id" in asked.headers else silent()
        return StreamingResponse(body, media_type="text/event-stream")

    async with (
        serving(Scripted(on_http=dead)) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=QUICK) as client,
    ):
        found = [event.type async for event in client.conversations.chat("hello")]
        held.set()
    assert found == ["message", "complete"]


async def test_stream_that_was_quiet_for_long_is_opened_anew_when_it_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person may think for hours: that the connection is lost then says nothing of the gateway."""
    monkeypatch.setattr(sse, "SILENT_S", 0.5)
    held = asyncio.Event()

    async def quiet() -> AsyncIterator[str]:
        yield ": still here\n\n"
        await held.wait()

    async def stream(asked: Asked) -> Response:
        done = 'id: 2\nevent: complete\ndata: {"text": "done"}\n\n'
        body = quiet() if len(script.asked) < 3 else iter([done])
        return StreamingResponse(body, media_type="text/event-stream")

    patience = replace(QUICK, request_s=0.1, outage_s=0.1)
    async with (
        serving(Scripted(on_http=stream)) as script,
        AsyncPlacet(script.url, token="t", agent="bot", patience=patience) as client,
    ):
        found = [event.type async for event in client.conversations.chat("hello")]
        held.set()
    assert (found, len(script.asked)) == (["complete"], 3)
