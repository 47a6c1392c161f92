"""What a consumer reads from: a gateway whose stream is scripted, and a schema registry with the shipped schemas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from placet import Consumer, LogEvent, consume
from schemas.registry import builtin
from tests.sdk.scripted import QUICK, Asked, Scripted

# A connection that says nothing more, until its client leaves or the test hangs up.
QUIET: bytes | None = None


def event(number: int, kind: str = "ExecutionPaused", **body: Any) -> bytes:
    """The message of an event; its cursor is its number."""
    message = {
        "type": "event",
        "cursor": str(number),
        "event_id": f"id-{number}",
        "event_type": kind,
        "at": "2026-01-31T09:30:00.250Z",
        "execution_id": "run",
        "version": number,
        "term": 0,
        "partition": 1,
        "offset": number,
        "command_id": "c",
        "data": {"reason": "lunch"},
        **body,
    }
    return sse("event", message, str(number))


def sse(kind: str, data: dict[str, Any], cursor: str | None = None) -> bytes:
    """One server-sent event."""
    head = "" if cursor is None else f"id: {cursor}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


CAUGHT_UP = sse("caught_up", {"type": "caught_up"}, "end")


def resync(reason: str) -> bytes:
    """The message that ends a stream, with a position that would begin anew."""
    return sse("resync_required", {"type": "resync_required", "reason": reason, "detail": "anew"}, "anew")


TOO_SLOW, GONE = resync("too_slow"), resync("gone")
GONE_QUIET = b": still here\n\nid: quiet\n\n"

# As long as a gateway's cursor; what it says is nobody's concern here.
PLACE = "p" * 51

# What one connection sends; None ends the script, and the connection stays open.
Connection = list[bytes | None]


@dataclass
class Gateway:
    """A gateway whose stream sends the next of some scripts to each connection, or answers with a refusal.

    A connection that is quiet ends by `hang_up`; `left` is set once one has ended, also by its client.
    """

    connections: list[Connection | Response]
    agents: dict[str, str] = field(default_factory=dict)
    cursors: list[str | None] = field(default_factory=list)
    params: list[dict[str, str]] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    hang_up: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def script(self) -> Scripted:
        return Scripted(on_http=self.answer, refuse_sockets=404)

    async def answer(self, asked: Asked) -> Response:
        if asked.path == "/v1/events/stream":
            return self._stream(asked)
        if asked.path.startswith("/v1/executions/"):
            execution_id = asked.path.rpartition("/")[2]
            self.read.append(execution_id)
            if execution_id not in self.agents:
                return JSONResponse({"code": "not_found", "status": 404}, 404)
            return JSONResponse({"execution_id": execution_id, "agent": self.agents[execution_id]})
        return registry(asked)

    def _stream(self, asked: Asked) -> Response:
        self.cursors.append(asked.headers.get("last-event-id"))
        self.params.append(dict(asked.params))
        sent = self.connections.pop(0)
        if isinstance(sent, Response):
            return sent
        return StreamingResponse(self._sending(sent), media_type="text/event-stream")

    async def _sending(self, parts: Connection) -> AsyncIterator[bytes]:
        for part in parts:
            if part is not None:
                yield part
                continue
            try:
                await self.hang_up.wait()
            finally:
                self.left.set()


def registry(asked: Asked) -> Response:
    """The answer of a registry with the schemas of this version."""
    _, _, *parts = asked.path.split("/")
    known = builtin()
    if asked.path == "/subjects":
        return JSONResponse(sorted(known.by_subject))
    if asked.path.startswith("/schemas/ids/"):
        found = known.by_id.get(int(parts[-1]))
        missing = JSONResponse({"error_code": 40403, "message": "no such schema"}, 404)
        return missing if found is None else JSONResponse({"schema": json.dumps(found.schema)})
    if asked.path.startswith("/subjects/"):
        return JSONResponse({"schema": json.dumps(known.latest(parts[0]).schema)})
    return JSONResponse({"code": "not_found"}, 404)


async def registry_alone(asked: Asked) -> Response:
    return registry(asked)


def consumer(script: Scripted, **more: Any) -> Consumer:
    return consume(script.url, token="secret", patience=QUICK, **more)


async def take(found: Consumer, count: int) -> list[LogEvent]:
    """The first events; the program asks for no further one."""
    events: list[LogEvent] = []
    iterator = aiter(found)
    try:
        while len(events) < count:
            events.append(await anext(iterator))
    finally:
        await iterator.aclose()
    return events


@dataclass
class Kept:
    """A checkpoint in memory, and a callback for each save."""

    cursor: str | None = None
    saved: list[str] = field(default_factory=list)
    on_save: Callable[[str], None] = lambda cursor: None

    def load(self) -> str | None:
        return self.cursor

    def save(self, cursor: str) -> None:
        self.cursor = cursor
        self.saved.append(cursor)
        self.on_save(cursor)
