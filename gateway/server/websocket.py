"""A WebSocket with limits: uvicorn's protocol, fed in slices between which other connections are served.

Input is parsed only as fast as the application takes messages: while a message waits for it, nothing more is parsed.
A slice takes at most two milliseconds, and the next one waits as long, or until the client's subject has paid for it.
After the server's close frame only the client's own is still looked for, and only for a short time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, cast

from uvicorn._types import ASGIReceiveEvent
from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame
from websockets.http11 import Response
from websockets.protocol import State

from gateway.problems import Problem
from gateway.server.bounds import Bounds
from gateway.server.connections import STATE, ClientConnection
from gateway.server.handshake import Handshake
from gateway.server.lingering_close import LingeringTransport

# uvicorn logs the whole target of each handshake, with its query, at INFO: only warnings and errors are kept.
logger = logging.getLogger("uvicorn.error.websocket")
logger.setLevel(logging.WARNING)

PIECE_BYTES = 4 * 1024
SLICE_S = 0.002
# The processor time for what arrives after the server's close frame: a client that answers it needs far less.
CLOSING_S = 0.01
# Less than this is not counted for the subject.
KEPT_BYTES = 16 * 1024
# Output that the client may not have taken yet; small messages are written together.
WRITTEN_BYTES = 16 * 1024
# Used by an application in place of `text`: several texts, as UTF-8, that are sent in one write.
TEXTS = "texts"


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: Bounds,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = logger
        self.conn: Handshake = Handshake(
            extensions=self.conn.available_extensions,
            max_size=config.ws_max_size,
            logger=logging.getLogger("uvicorn.error"),
        )
        self.bounds = bounds
        self.client_connection: ClientConnection = app_state[STATE]
        self._unparsed = bytearray()
        self._next_slice: asyncio.Handle | None = None
        self._controls = 0
        self._closing_s = 0.0
        # Of the messages in the queue, and of the one that the application has until it asks for the next.
        self._queued_bytes = deque[int]()
        self._given_bytes = 0
        if not self.client_connection.is_authenticated:
            self.client_connection.on_authenticated = self._open_wide
            self.conn.max_message_size = bounds.first_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open; the handshake comes next."""
        super().connection_made(transport)
        self.lingering = cast(LingeringTransport, transport)
        self.lingering.transport.set_write_buffer_limits(high=WRITTEN_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self.client_connection.closed()
        self._unparsed.clear()
        if self._next_slice is not None:
            self._next_slice.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes: the handshake's head, which comes whole, at once, and the rest in slices."""
        if not self.handshake_initiated:
            self._parse_handshake(data)
            return
        if not self.handshake_complete:
            # A client must wait for the answer (RFC 6455, section 4.1). Earlier bytes were perhaps not meant for a
            # socket, and the library cannot fail a connection that is not open.
            if self.initial_response is None:
                self.lingering.still_sending = True
                self._turn_down(
                    self.conn.reject(HTTPStatus.BAD_REQUEST, "wait for the answer to the handshake")
                )
            return
        self._unparsed += data
        if self._next_slice is None:
            self._parse_slice()
        else:
            # The library resumes the reading when the application closes: not before the slice is due.
            self.transport.pause_reading()

    def handle_cont(self, event: Frame) -> None:
        """Add a fragment to a message."""
        if len(self.frames) > self.bounds.fragments:
            self._fail(CloseCode.MESSAGE_TOO_BIG, f"a message has at most {self.bounds.fragments} fragments")
        elif not self.close_sent:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Deliver a complete message; a text that is not UTF-8 closes the connection with 1007."""
        if not self.close_sent:
            self._queued_bytes.append(sum(map(len, self.frames)))
        if self.curr_msg_data_type != "text" or self.close_sent:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        try:
            text = data.decode()
        except UnicodeDecodeError:
            # uvicorn would log each of them as an error of its own, with a traceback.
            self._fail(CloseCode.INVALID_DATA, "a text must be UTF-8")
            return
        self.queue.put_nowait({"type": "websocket.receive", "text": text})
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def shutdown(self) -> None:
        """Close with 1012, since the server ends; a handshake under way is refused, and the client can try again."""
        if self.handshake_initiated and not self.handshake_complete and self.initial_response is None:
            answer = self.conn.reject(HTTPStatus.SERVICE_UNAVAILABLE, "this gateway is stopping")
            answer.headers["Retry-After"] = "1"
            self._turn_down(answer)
            return
        try:
            super().shutdown()
        except InvalidState:
            # Both sides have sent a close frame, and the client leaves the connection open.
            self.lingering.abort()

    def handle_ping(self) -> None:
        """Answer a ping."""
        if self._count_control():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Count an answer to a ping."""
        if self._count_control():
            super().handle_pong(event)

    def handle_parser_exception(self) -> None:
        """Send the error of the received bytes, and close."""
        self.lingering.still_sending = True
        super().handle_parser_exception()

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next message; it is given to the application before the next one is parsed."""
        if self._given_bytes:
            self._given_bytes = 0
            self._keep()
        message = await self.queue.get()
        if message["type"] == "websocket.receive":
            self._given_bytes = self._queued_bytes.popleft()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            # A slice that is to come resumes the reading by itself.
            if self._next_slice is None and self._unparsed:
                self._next_slice = self.loop.call_soon(self._parse_slice)
            elif self._next_slice is None:
                self.transport.resume_reading()
        return message

    async def send(self, message: Any) -> None:
        """Send, and return when the client has taken nearly all of it.

        Raises:
            ClientDisconnected: the connection is closed, or closing because of the client.
        """
        if self.close_sent:
            raise ClientDisconnected
        if (texts := message.get(TEXTS)) is None:
            await super().send(message)
            if message["type"] == "websocket.close" and self._unparsed and self._next_slice is None:
                # The client's own close frame may be there already.
                self._next_slice = self.loop.call_soon(self._parse_slice)
            if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
                # uvicorn leaves the handshake open after a refusal, and would log each of them as an error.
                self.handshake_complete = True
        else:
            await self._send_texts(texts)
        if self.writable.is_set():
            return
        try:
            async with asyncio.timeout(self.bounds.stall_s):
                await self.writable.wait()
        except TimeoutError:
            self.lingering.abort()

    async def _send_texts(self, texts: Sequence[bytes]) -> None:
        await self.writable.wait()
        if self.disconnected or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join([part for text in texts for part in (_head_of_text(len(text)), text)]))

    def _turn_down(self, answer: Response) -> None:
        """Refuse the handshake while the application is still processing it."""
        self.conn.send_response(answer)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
        self.handshake_complete = self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def _open_wide(self) -> None:
        self.conn.max_message_size = self.config.ws_max_size

    def _count_control(self) -> bool:
        """Count a control frame, and end the connection if there are too many; True if the frame is handled."""
        self._controls += 1
        if self.transport.get_write_buffer_size() > self.bounds.first_bytes:
            self.lingering.abort()
        elif not self.client_connection.is_authenticated and self._controls > self.bounds.first_controls:
            self._fail(CloseCode.POLICY_VIOLATION, "authenticate before you send more pings")
        return not self.close_sent

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close because of what the client sent; the rest of it is dropped."""
        if not self.close_sent:
            self.conn.fail(code, reason)
            self.handle_parser_exception()

    def _parse_handshake(self, head: bytes) -> None:
        super().data_received(head)
        if not self.handshake_initiated and not self.lingering.is_closing():
            # The library does not answer a handshake that it cannot parse.
            self.transport.write(self.conn.unreadable().serialize())
            self.lingering.still_sending = True
            self.lingering.close()

    def _parse_slice(self) -> None:
        self._next_slice = None
        if wait_s := self.client_connection.charge(0.0):
            self._parse_later(wait_s)
            return
        started = time.thread_time()
        is_done = self._parse_some()
        self._keep()
        took_s = time.thread_time() - started
        wait_s = self.client_connection.charge(took_s)
        if self.lingering.is_closing():
            # What still arrives is read by `InputDrain`.
            self._unparsed.clear()
            return
        if self.close_sent:
            self._closing_s += took_s
            # A close frame is short: what is longer is not kept for it.
            if self._closing_s > CLOSING_S or self._unfinished_bytes() > KEPT_BYTES:
                self._drain()
                return
        if not is_done:
            self._parse_later(max(SLICE_S, wait_s))
        elif not self.read_paused:
            if wait_s:
                self._parse_later(wait_s)
            else:
                self.transport.resume_reading()

    def _parse_some(self) -> bool:
        """Parse for at most a slice; True if nothing is left that can be parsed now."""
        until = self.loop.time() + SLICE_S
        while self._unparsed and not self.read_paused and not self.lingering.is_closing():
            piece = bytes(self._unparsed[:PIECE_BYTES])
            del self._unparsed[:PIECE_BYTES]
            super().data_received(piece)
            # Looked at after a piece: a machine that stops the gateway again and again only slows the parsing.
            if self._unparsed and self.loop.time() > until:
                return False
        return True

    def _keep(self) -> None:
        """Count what is in memory: a message that waits to be handled, and what follows, perhaps without an end."""
        size = self._given_bytes + sum(self._queued_bytes) + self._unfinished_bytes()
        try:
            self.client_connection.keep(size if size > KEPT_BYTES else 0)
        except Problem as problem:
            self._fail(CloseCode.TRY_AGAIN_LATER, problem.detail)

    def _unfinished_bytes(self) -> int:
        return len(self._unparsed) + len(self.conn.reader.buffer) + sum(map(len, self.frames))

    def _parse_later(self, wait_s: float) -> None:
        self.transport.pause_reading()
        self._next_slice = self.loop.call_later(wait_s, self._parse_slice)

    def _drain(self) -> None:
        """Drop what still arrives, and end the connection: its client does not answer the close frame."""
        self._unparsed.clear()
        self.lingering.still_sending = True
        self.lingering.close()


def _head_of_text(size: int) -> bytes:
    """Return the head of a server's frame with a whole text of a given size (RFC 6455, section 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    if size < 2**16:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")
