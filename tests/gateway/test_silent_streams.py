"""A page whose connection becomes silent, or whose message is refused for now, in real Chromium.

The gateway is a stand-in, since no real one is silent for a minute when it is asked to be.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.gateway import test_hitl_frontend_live
from tests.gateway.browser import open_page
from tests.pages import ROOT, blocks_of
from tests.servers.threaded import serving

PAGE = ROOT / "examples" / "hitl" / "chat.html"
EMPTY = b"<!doctype html><title>A page</title>"
COMMENT = b": still here\n\n"
SILENCE_MS = 60_000
WITHIN_S = 30.0
DETAIL = "20 messages of yours wait already"


@dataclass
class Connection:
    """A connection of a page, and what the gateway sends on it next; None ends it."""

    last_event_id: str | None
    sends: queue.Queue[bytes | None] = field(default_factory=queue.Queue)

    def tell(self, number: int, event: str, **data: Any) -> None:
        """Send an event."""
        self.sends.put(f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode())


@dataclass
class Gateway:
    """A gateway that sends what a test puts, and refuses some requests."""

    page: bytes
    refusals: dict[int, dict[str, str]]
    connections: list[Connection] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def connected(self, last_event_id: str | None) -> tuple[Connection, dict[str, str] | None]:
        """Note a connection; return it, and the headers of its refusal if it is one."""
        with self._lock:
            number = len(self.connections)
            self.connections.append(Connection(last_event_id))
            return self.connections[-1], self.refusals.get(number)


@contextmanager
def stalling(page: bytes, refusals: dict[int, dict[str, str]]) -> Iterator[tuple[str, Gateway]]:
    """Its origin; it serves the page too."""
    gateway = Gateway(page, refusals)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path == "/"
            self.answer(200 if is_page else 404, "text/html" if is_page else "application/problem+json")
            self.wfile.write(gateway.page if is_page else b'{"code": "not_found", "detail": "none"}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            connection, refusal = gateway.connected(self.headers["Last-Event-ID"])
            if refusal is not None:
                self.answer(429, "application/problem+json", **refusal)
                self.wfile.write(json.dumps({"code": "quota", "detail": DETAIL}).encode())
                return
            self.answer(200, "text/event-stream")
            while (said := connection.sends.get()) is not None:
                self.wfile.write(said)

        def answer(self, status: int, kind: str, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": f"{kind}; charset=utf-8", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        try:
            yield f"http://127.0.0.1:{server.server_port}", gateway
        finally:
            for connection in gateway.connections:
                connection.sends.put(None)


# What a page sets timers for, and how often it has taken one back, as it does for each part that comes.
WATCHED = """() => {
    window.delays = [];
    window.cleared = 0;
    const { setTimeout: set, clearTimeout: clear } = window;
    window.setTimeout = (done, delay, ...rest) => { window.delays.push(delay); return set(done, delay, ...rest); };
    window.clearTimeout = (timer) => { window.cleared += 1; clear(timer); };
}"""
GUIDE = """([text, url]) => {
    const chat = new Function(`${text}; return chat;`)();
    const show = (kind, data) => document.body.append(`${kind} ${data.text ?? data.detail ?? ""} `);
    chat(url, () => "token", { message: "hi", message_id: "m", conversation_id: "c" }, show);
}"""

Begin = Callable[[Page, str], Awaitable[None]]


async def begin_page(page: Page, url: str) -> None:
    """Send a message by the example."""
    for name, value in (("gateway", url), ("token", "token"), ("agent", "bot"), ("text", "hi")):
        await page.fill(f"[name={name}]", value)
    await page.click("text=Send")


async def begin_guide(page: Page, url: str) -> None:
    """Send a message by the guide's function."""
    file = Path(test_hitl_frontend_live.__file__)
    (block,) = blocks_of(file, test_hitl_frontend_live.test_chat_function_of_the_guide.__name__)
    await page.evaluate(GUIDE, [block.text, url])


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(WITHIN_S):
        while not await is_so():
            await asyncio.sleep(0.01)


@dataclass
class Chatting:
    """A page with a message under way, whose clock the test turns."""

    page: Page
    gateway: Gateway

    async def connection(self, number: int) -> Connection:
        """The connection of this number, from 0 on, once it is there."""

        async def is_there() -> bool:
            return len(self.gateway.connections) > number

        await until(is_there)
        assert len(self.gateway.connections) == number + 1
        return self.gateway.connections[number]

    async def shows(self, text: str) -> None:
        """Wait until the page shows something."""
        await expect(self.page.locator("body")).to_contain_text(text, timeout=WITHIN_S * 1000)

    async def hears(self, connection: Connection, said: bytes) -> None:
        """Send something that shows nothing, and wait until the page has read it."""
        before = await self.page.evaluate("window.cleared")
        connection.sends.put(said)

        async def has_heard() -> bool:
            return bool(await self.page.evaluate("window.cleared") > before)

        await until(has_heard)

    async def passes(self, seconds: int) -> None:
        """Turn the page's clock."""
        await self.page.clock.fast_forward(seconds * 1000)


@pytest.fixture(params=[(PAGE.read_bytes(), begin_page), (EMPTY, begin_guide)], ids=["example", "guide"])
async def chatting(request: pytest.FixtureRequest) -> AsyncIterator[Chatting]:
    """By the example or the guide; its second connection is refused for 30 s."""
    text, begin = request.param
    with stalling(text, {1: {"Retry-After": "30"}}) as (origin, gateway):
        async with open_page(f"{origin}/") as page:
            await page.clock.install()
            await page.reload()
            await page.evaluate(WATCHED)
            await begin(page, origin)
            yield Chatting(page, gateway)


async def test_silent_connection_is_given_up_after_a_minute_and_a_refusal_is_shown_and_waited_for(
    chatting: Chatting,
) -> None:
    first = await chatting.connection(0)
    assert first.last_event_id is None
    first.tell(1, "message", text="first")
    await chatting.shows("first")
    # A comment is a sign of life.
    await chatting.passes(45)
    await chatting.hears(first, COMMENT)
    await chatting.passes(45)
    first.tell(2, "message", text="second")
    await chatting.shows("second")
    # Given up after a minute, it connects again after another second.
    await chatting.passes(61)
    await chatting.passes(2)
    assert (await chatting.connection(1)).last_event_id == "2"
    await chatting.shows(DETAIL)
    delays = await chatting.page.evaluate("window.delays")
    assert (delays[-1], max(delays)) == (30_000, SILENCE_MS)
    await chatting.passes(31)
    last = await chatting.connection(2)
    assert last.last_event_id == "2"
    last.tell(3, "complete")
    last.sends.put(None)
    await chatting.shows("complete" if await chatting.page.title() == "A page" else "—")
