"""A peer on loopback whose every word is scripted: for faults that a real gateway only has by accident."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from placet.transport.port import Patience

QUICK = Patience(
    request_s=5.0,
    open_s=2.0,
    first_delay_s=0.01,
    most_delay_s=0.05,
    subscribe_after_s=0.05,
    poll_s=0.3,
    outage_s=5.0,
)
DEADLINE_S = 60.0


@dataclass(frozen=True)
class Asked:
    """One HTTP request as it arrived."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Peer:
    """One socket as the script sees it."""

    socket: WebSocket
    number: int
    received: list[dict[str, Any]] = field(default_factory=list)

    async def say(self, **message: Any) -> None:
        await self.socket.send_text(json.dumps(message))

    async def reply(self, asked: Mapping[str, Any], body: Any, status: int = 200, **more: Any) -> None:
        await self.say(type="reply", ref=asked["ref"], status=status, body=body, **more)

    async def end(self, code: int = 1011, reason: str = "") -> None:
        await self.socket.close(code, reason)


OnHttp = Callable[[Asked], Awaitable[Response]]
OnFrame = Callable[[Peer, dict[str, Any]], Awaitable[None]]


async def no_http(asked: Asked) -> Response:
    return JSONResponse({"code": "not_found", "detail": f"{asked.method} {asked.path}"}, 404)


async def no_frame(peer: Peer, message: dict[str, Any]) -> None:
    """Says nothing."""


@dataclass
class Scripted:
    """The peer: what it was asked, and how it answers."""

    on_http: OnHttp = no_http
    on_frame: OnFrame = no_frame
    subprotocol: str | None = "placet.v1"
    refuse_sockets: int = 0
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    _heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def http(self, request: Request) -> Response:
        asked = Asked(
            request.method,
            request.url.path,
            dict(request.query_params),
            dict(request.headers),
            await request.body(),
        )
        self.asked.append(asked)
        await self._tell()
        return await self.on_http(asked)

    async def socket(self, socket: WebSocket) -> None:
        if self.refuse_sockets:
            await socket.send_denial_response(Response("no sockets here", self.refuse_sockets))
            return
        await socket.accept(self.subprotocol)
        peer = Peer(socket, len(self.peers))
        self.peers.append(peer)
        try:
            while True:
                message = json.loads(await socket.receive_text())
                peer.received.append(message)
                await self._tell()
                await self.on_frame(peer, message)
        except (WebSocketDisconnect, RuntimeError):
            # Starlette raises RuntimeError for reading from a socket that the script has closed.
            await self._tell()

    def frames(self, kind: str) -> list[dict[str, Any]]:
        return [message for peer in self.peers for message in peer.received if message.get("type") == kind]

    async def until(self, happened: Callable[[], Any]) -> None:
        async with self._heard:
            await asyncio.wait_for(self._heard.wait_for(happened), DEADLINE_S)

    async def _tell(self) -> None:
        async with self._heard:
            self._heard.notify_all()


@asynccontextmanager
async def serving(script: Scripted, port: int = 0) -> AsyncIterator[Scripted]:
    """Serve a script on loopback."""
    methods = ["GET", "POST", "PUT"]
    app = Starlette(
        routes=[WebSocketRoute("/v1/ws", script.socket), Route("/{rest:path}", script.http, methods=methods)]
    )
    config = uvicorn.Config(
        app, port=port, log_level="error", lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=0
    )
    server = uvicorn.Server(config)
    sockets = [config.bind_socket()]
    script.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets)
    try:
        yield script
    finally:
        await server.shutdown(sockets)
        sockets[0].close()
