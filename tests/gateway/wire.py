"""A connection of the HTTP server without a socket: what comes is cut exactly where a test says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from gateway.server.bounds import Bounds
from gateway.server.connections import Connections
from gateway.server.http import BoundedHttp
from gateway.server.websocket import BoundedWebSocket

WITHIN_S = 30.0
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [A-Z]")
Handled = tuple[str, str, bytes]


class Recorder:
    """An application that notes each request, and answers it when its body is whole."""

    def __init__(self) -> None:
        self.handled: list[Handled] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await _accept(receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.handled.append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def _accept(receive: Any, send: Any) -> None:
    await receive()
    await asyncio.sleep(0.05)
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": "heard"})


class Wire(asyncio.Transport):
    """What was written to a connection, and whether it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_over = False
        self.is_paused = False
        self.protocol: Any = None

    def feed(self, data: bytes) -> None:
        """One read of the server's."""
        self.protocol.data_received(data)

    def write(self, data: Any) -> None:
        if not self.is_over:
            self.written += bytes(data)

    def write_eof(self) -> None:
        # Of a server that reads and drops what still comes, nobody is read any more.
        self.is_over = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.is_over = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_over

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        found: asyncio.BaseProtocol = self.protocol
        return found

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def answers(self) -> list[int]:
        """The status of each answer."""
        return [int(status) for status in STATUS_LINE.findall(self.written)]


def config_of(app: Any, bounds: Bounds) -> uvicorn.Config:
    """The server's, with the production protocols."""
    config = uvicorn.Config(
        app,
        http=partial(BoundedHttp, bounds=bounds, client_connections=Connections(bounds)),  # type: ignore[arg-type]
        ws=partial(BoundedWebSocket, bounds=bounds),  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,
    )
    config.load()
    return config


async def fed(app: Any, reads: Iterable[bytes], answers: int, bounds: Bounds | None = None) -> Wire:
    """Feed a connection with these reads, until it is over or has given so many answers and come to rest."""
    bounds = bounds or Bounds()
    config, wire, state = config_of(app, bounds), Wire(), ServerState()
    http: Any = config.http_protocol_class
    wire.protocol = http(config=config, server_state=state, app_state={})
    wire.protocol.connection_made(wire)
    async with asyncio.timeout(WITHIN_S):
        for data in reads:
            while wire.is_paused and not wire.is_over:
                await asyncio.sleep(0)
            if wire.is_over:
                break
            wire.feed(data)
        while not wire.is_over and len(wire.answers()) < answers:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
    wire.protocol.connection_lost(None)
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*state.tasks)
    return wire
