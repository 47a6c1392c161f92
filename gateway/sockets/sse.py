"""Server-sent events: /v1/events/stream sends the messages of the WebSocket; `Last-Event-ID` is a cursor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.identity.authentication import Authentication, RolesChanged
from gateway.metrics import Metrics
from gateway.operations.plan import Gate
from gateway.problems import Problem, message_of
from gateway.pushes.hub import Hub
from gateway.pushes.resyncs import Resync
from gateway.server.websocket import WRITTEN_BYTES
from gateway.settings import Limits
from gateway.sockets.outgoing import OutgoingFrames, resync_frame
from gateway.sockets.snapshots import begin_anew
from projections.tables.holds import HoldRow
from schemas.actor import Actor

# The header with the cursor from which a stream continues.
LAST_EVENT_ID = "Last-Event-ID"
# The message with which a stream ends that was asked only for what there is.
CAUGHT_UP = "caught_up"
# A regular comment keeps proxies from closing a quiet stream, and detects readers that are gone. On a stream of
# unchanged messages the position comes with it, so that a reader to whom nothing happens does not fall behind.
STILL_HERE = b": still here\n\n"
HEARTBEAT_S = 15.0
_LINE_ENDS = (("\x85".encode(), rb"\u0085"), ("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029"))
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Show(Protocol):
    """Makes the events of a stream from the messages of its channels.

    Attributes:
        is_over: True once nothing more is to be sent.
        tells_place: True if the position is sent from time to time while there are no messages.
    """

    is_over: bool
    tells_place: bool

    def __call__(self, frame: bytes) -> bytes:
        """Return the event for a message; empty if there is none."""
        ...


class Messages:
    """Shows every message unchanged, without end."""

    is_over = False
    tells_place = True

    def __call__(self, frame: bytes) -> bytes:
        """Return a message as an event."""
        return sse_event(frame)


@dataclass(slots=True, eq=False)
class Stream:
    """A reader of a stream. It is a receiver of the hub, and cannot subscribe again on the same stream.

    `first` makes events that are sent before all others, `cursor_name` is as in `Subscriber`.
    """

    gate: Gate
    hub: Hub
    actor: Actor
    metrics: Metrics
    out: OutgoingFrames
    authentication: Authentication
    show: Show = field(default_factory=Messages)
    first: AsyncGenerator[bytes, None] | None = None
    channels: set[str] = field(default_factory=set)
    behind: str | None = None
    catching: set[str] = field(default_factory=set)
    cursor_name: str = LAST_EVENT_ID

    @property
    def has_room(self) -> bool:
        """True if its queue has room for the messages of a whole command."""
        return self.out.has_room

    @property
    def is_closed(self) -> bool:
        """True if its queue takes no more messages."""
        return self.out.closed

    async def drained(self) -> None:
        """Wait until there is such room, or the queue is closed."""
        await self.out.drained()

    @property
    def limits(self) -> Limits:
        """The limits on what may wait for it."""
        return self.out.limits

    def push(self, message: bytes) -> None:
        """Queue a message; a reader that is too slow must begin anew, and its stream ends."""
        if not self.out.closed and not self.out.push(message):
            self.resync(Resync.TOO_SLOW)

    def hide(self, hold: HoldRow) -> None:
        """Say nothing: its reader is not told which holds it may no longer see."""

    def resync(self, reason: Resync) -> None:
        """Drop the waiting pushes, notify the reader, and end."""
        self.hub.unsubscribe(self, self.channels)
        self.catching.clear()
        self.out.drop_pushes()
        self.out.answer(resync_frame(begin_anew(self.gate.live.position), reason))
        self.out.close()
        self.metrics.resyncs.inc()

    def end(self) -> None:
        """Say that everything up to now was sent, and end."""
        self.hub.unsubscribe(self, self.channels)
        self.out.answer(orjson.dumps({"type": CAUGHT_UP}), self.gate.live.position.cursor())
        self.out.close()

    def give_up(self, problem: Problem) -> None:
        """Send the pushes that wait, and the problem, without an id; then end."""
        self.out.push(_error(problem))
        self.out.close()


class EventStream(StreamingResponse):
    """A stream as a response. However it ends, even before its first message, its reader leaves hub and slot.

    With `follows` false it ends once its reader has caught up.
    """

    def __init__(
        self,
        stream: Stream,
        slot: ExitStack,
        catching_up: Coroutine[Any, Any, None] | None,
        *,
        follows: bool = True,
    ) -> None:
        super().__init__(_frames(stream), media_type="text/event-stream", headers=HEADERS)
        self.reader = stream
        self.slot = slot
        self.catching_up = catching_up
        self.follows = follows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream."""
        reader = self.reader
        reader.metrics.sockets.inc()
        catching_up = (
            None if self.catching_up is None else asyncio.create_task(self._catch_up(self.catching_up))
        )
        if catching_up is None and not self.follows:
            reader.end()
        try:
            await super().__call__(scope, receive, send)
        finally:
            if catching_up is not None:
                catching_up.cancel()
                await asyncio.gather(catching_up, return_exceptions=True)
            reader.metrics.sockets.dec()
            reader.hub.forget(reader)
            self.slot.close()

    async def stream_response(self, send: Send) -> None:
        """Write the stream, at its reader's cost."""
        await self.reader.gate.work.sent(self.reader.out.owner, partial(super().stream_response, send))

    async def _catch_up(self, catching_up: Coroutine[Any, Any, None]) -> None:
        """Send the reader what it missed; if that fails, it is told to reconnect from its last position."""
        try:
            await catching_up
        except Problem as problem:
            self.reader.give_up(problem)
        if not self.follows and not self.reader.out.closed:
            self.reader.end()


async def _frames(stream: Stream) -> AsyncIterator[bytes]:
    authentication, clock = stream.authentication, asyncio.get_running_loop().time
    said_at = clock()
    try:
        if stream.first is not None:
            async with aclosing(stream.first) as before:
                async for event in before:
                    await authentication.check()
                    yield event
        while not stream.show.is_over:
            frames = None
            with suppress(TimeoutError):
                async with asyncio.timeout(authentication.recheck_s):
                    frames = await stream.out.take_some(WRITTEN_BYTES)
            await authentication.check()
            if frames is not None and not frames:
                return
            told = _shown(stream.show, frames or ())
            # Messages that are no event of this stream, such as an earlier turn's, keep nothing alive.
            if not told and clock() - said_at >= HEARTBEAT_S:
                told = STILL_HERE + (_place(stream) if frames is None else b"")
            if told:
                yield told
                said_at = clock()
            if frames:
                await stream.gate.work.may_send(stream.out.owner)
    except RolesChanged:
        # The reader reconnects, with its present roles.
        return
    except Problem as problem:
        yield stream.show(_error(problem))


def _place(stream: Stream) -> bytes:
    """Return the position of a reader to whom everything was written, as an id without an event; empty if unknown."""
    if not stream.show.tells_place or not stream.out.is_empty or stream.out.closed:
        return b""
    if stream.behind is not None:
        return place_bytes(stream.behind)
    return place_bytes(stream.gate.live.position.cursor()) if stream.channels else b""


def _shown(show: Show, frames: Sequence[bytes]) -> bytes:
    """Return the events for messages, up to the one with which the stream is over."""
    events = []
    for frame in frames:
        events.append(show(frame))
        if show.is_over:
            break
    return b"".join(events)


def sse_event(frame: bytes) -> bytes:
    """Return a message as one server-sent event: its type, its cursor as id, and the whole message as data.

    An event without a cursor has no id: the reader keeps the previous one.
    """
    message = orjson.loads(frame)
    return _event(message["type"], frame, message.get("cursor"))


def event_bytes(kind: str, data: dict[str, Any], cursor: str | None = None) -> bytes:
    """Return one server-sent event, with a cursor as its id."""
    return _event(kind, orjson.dumps(data), cursor)


def place_bytes(cursor: str) -> bytes:
    """Return an id without an event: a reader takes note of it, and is shown nothing."""
    return b"id: %b\n\n" % cursor.encode()


def _event(kind: str, data: bytes, cursor: str | None) -> bytes:
    head = b"" if cursor is None else b"id: %b\n" % cursor.encode()
    return head + b"event: %b\ndata: %b\n\n" % (kind.encode(), _one_line(data))


def _one_line(data: bytes) -> bytes:
    """Return a JSON text in which no reader finds the end of a line.

    By the standard only CR and LF end one, which JSON escapes. But the line readers of many HTTP clients also end it
    at these three characters, as `str.splitlines` does. They occur in JSON only inside strings.
    """
    for character, escaped in _LINE_ENDS:
        data = data.replace(character, escaped)
    return data


def _error(problem: Problem) -> bytes:
    # Messages may be waiting that the reader never gets: it continues after the last one that it has.
    return orjson.dumps(message_of(problem))
