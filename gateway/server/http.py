"""HTTP/1.1 with limits: uvicorn's protocol, which sets none, fed in pieces and with timeouts.

The parser delivers a header when it is complete, and buffers every byte of it until then; so the bytes of a head are
counted here. A connection is in its head from its first moment, and again from the end of each request; it is in its
body from the end of the head to the end of the body. Each has its timeout. A request that exceeds a limit is answered
with a problem document, after the answers to earlier requests, and the connection ends.

A proxy in front sends the requests of many clients over one connection. So it must be unambiguous where one request
ends and the next begins: a request that two parsers could read differently is refused, and nothing after it is read.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Any, cast

import httptools
import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gateway.problems import bare_document
from gateway.server.addresses import network_of
from gateway.server.bounds import Bounds
from gateway.server.connections import STATE, ClientConnection, Connections
from gateway.server.lingering_close import LingeringTransport, as_transport
from gateway.server.upgrades import has_body, is_handshake, without_offer

# The size of a piece that is parsed at once; the limits are checked between two pieces.
PIECE_BYTES = 16 * 1024
# The WebSocket library accepts no longer line in a handshake.
UPGRADE_LINE_BYTES = 8_000
# The blanks, version and end of a request's line, and the line after the head; the colon and end of a header.
LINE_MARKS = len("  HTTP/1.1\r\n") + len("\r\n")
HEADER_MARKS = len(":\r\n")
# The versions that a proxy uses to a server behind it; the parser also accepts 0.9 and 2.0.
VERSIONS = frozenset({"1.0", "1.1"})
OTHER_VERSION = (505, "only HTTP/1.1 and HTTP/1.0 are supported")
# The parser's messages for a version that is a number but unknown to it (HTTP/1.2, HTTP/3), and for HTTP/2's preface.
UNKNOWN_VERSION = frozenset(
    {"Invalid HTTP version", "Expected dot", "Pause on PRI/Upgrade", "Expected HTTP/2 Connection Preface"}
)


class OverBounds(Exception):
    """Raised within the parser, which then stops."""


class BoundedHttp(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: Bounds,
        client_connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.bounds = bounds
        self.timeout_keep_alive = bounds.idle_s
        self.client_connections = client_connections
        self.client_connection: ClientConnection | None = None
        self._in_body = False
        self._head_bytes = 0
        self._wire_bytes = 0
        self._body_bytes = 0
        self._dropped_bytes = 0
        # True if a head or request ended within the piece: how much of the piece belongs to it is not known.
        self._has_turned = False
        self._is_handshake = False
        self._is_upgraded = False
        self._refusal = (400, "this is not an HTTP request")
        self._timer: asyncio.TimerHandle | None = None
        # The request that is being answered; `cycle` is the last one that arrived.
        self._running: RequestResponseCycle | None = None
        # The refusal to send when all earlier requests are answered; nothing more is read then.
        self._last_word: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        self.lingering = LingeringTransport(transport, self, self.bounds)
        super().connection_made(as_transport(self.lingering))
        flow = self.flow
        host = self.client[0] if self.client else ""
        address = network_of(host) or host
        self.client_connection = ClientConnection(
            address, self.lingering.abort, self.client_connections, lambda: flow.write_paused, flow.drain
        )
        self.app_state = {**self.app_state, STATE: self.client_connection}
        self._allow(self.bounds.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._stop_clock()
        if self.client_connection is not None:
            self.client_connection.closed()
        if self._running is not None:
            _leave(self._running)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes, piece by piece."""
        if not self._in_body and self._timer is None and self._last_word is None:
            self._allow(self.bounds.head_s)
        view = memoryview(data)
        for start in range(0, len(data), PIECE_BYTES):
            if self.lingering.is_closing():
                return
            if self._last_word is not None:
                self._drop(len(data) - start)
                return
            if self._is_upgraded:
                self._hand_on(bytes(view[start:]))
                return
            self._take(bytes(view[start : start + PIECE_BYTES]))

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the WebSocket's protocol."""
        self._stop_clock()
        if self._is_answering():
            # The answer under way would be written into the socket.
            self._refuse(400, "send a handshake only after earlier requests are answered")
            return
        lines = (len(name) + len(value) for name, value in self.scope["headers"])
        if max(lines, default=0) > UPGRADE_LINE_BYTES or len(self.url) > UPGRADE_LINE_BYTES:
            self._refuse(431, f"a line of a handshake may have at most {UPGRADE_LINE_BYTES} bytes")
            return
        self._is_upgraded = True
        Context().run(super().handle_websocket_upgrade)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, or exceeds a limit."""
        self._refuse(*self._refusal)

    def on_message_begin(self) -> None:
        """A request begins."""
        if len(self.pipeline) >= self.bounds.pipelined:
            self.lingering.abort()
            raise OverBounds("pipelined")
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        super().on_url(url)
        if len(self.url) > self.bounds.line_bytes:
            self._refusal = (
                414,
                f"a request's target may have at most {self.bounds.line_bytes} bytes",
            )
            raise OverBounds("target")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after a chunked body, which is ignored (RFC 9110, 6.5.1)."""
        if self._in_body:
            # A proxy in front has checked the head; trailers must not change the caller or the request's meaning.
            return
        super().on_header(name, value)
        if len(self.headers) > self.bounds.headers:
            self._refusal = (
                431,
                f"a request may have at most {self.bounds.headers} headers",
            )
            raise OverBounds("headers")

    def on_headers_complete(self) -> None:
        """The head is complete."""
        if self._head_size() > self.bounds.head_bytes:
            self._refusal = (431, self._head_detail())
            raise OverBounds("head")
        self._check_framing()
        if self.parser.should_upgrade():
            self._check_offer()
            return
        # It raises on a target that cannot be read: then there is no request yet.
        super().on_headers_complete()
        self._in_body = self._has_turned = True
        self._wire_bytes = self._body_bytes = 0
        self._allow(self.bounds.body_s)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body_bytes += len(body)
        if self.cycle is not None and self.cycle.response_complete:
            self._drop(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self.parser.should_upgrade():
            # For a request that offers another protocol, only the head is complete.
            return
        self._in_body = False
        self._has_turned = True
        self._head_bytes = self._dropped_bytes = 0
        self._stop_clock()
        super().on_message_complete()
        if not self.parser.should_keep_alive():
            self._end_behind(self.cycle)

    def on_response_complete(self) -> None:
        """A request is answered: the next request is served, or the final refusal is sent."""
        if self._last_word is None or self.pipeline or self.lingering.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self._end_with(self._last_word)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        # A pipelined request is begun by the end of the one before it, whose trace and ids are not its own.
        Context().run(super()._start_asgi_task, cycle, app)

    def _is_answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _check_framing(self) -> None:
        """Refuse a head for which two parsers could disagree about the end of the request."""
        version = self.parser.get_http_version()
        if version not in VERSIONS:
            self._refusal = OTHER_VERSION
            raise OverBounds("version")
        values = [value for name, value in self.headers if name == b"transfer-encoding"]
        if values and version == "1.0":
            # RFC 9112, section 6.1: an HTTP/1.0 intermediary may have forwarded it without understanding it.
            self._refusal = (400, "HTTP/1.0 has no Transfer-Encoding")
            raise OverBounds("transfer coding")
        # The parser would treat the encoded bytes as the body.
        if values and b",".join(values).strip().lower() != b"chunked":
            self._refusal = (501, "send a body as it is, or in chunks")
            raise OverBounds("transfer coding")

    def _check_offer(self) -> None:
        """Refuse a tunnel and an invalid handshake; every other offer is ignored."""
        method = self.parser.get_method()
        self.scope["method"] = method.decode("ascii")
        if method == b"CONNECT":
            self._refusal = (405, "this is not a proxy")
            raise OverBounds("tunnel")
        self._is_handshake = is_handshake(self.parser.get_http_version(), self.headers)
        if self._is_handshake and (method != b"GET" or has_body(self.headers)):
            self._refusal = (
                400,
                "this is not a WebSocket handshake, which is a GET without a body",
            )
            raise OverBounds("handshake")

    def _end_behind(self, cycle: RequestResponseCycle) -> None:
        """End the connection after this request: the parser reads nothing after it."""
        cycle.keep_alive = False
        if cycle.response_complete:
            self.lingering.close()

    def _feed(self, piece: bytes) -> None:
        """Parse a piece; a request whose offer is ignored is parsed again without the offer."""
        self._unset_keepalive_if_required()
        while True:
            try:
                self.parser.feed_data(piece)
                return
            except httptools.HttpParserError as error:
                if self.lingering.is_closing():
                    return
                if str(error) in UNKNOWN_VERSION:
                    self._refusal = OTHER_VERSION
                self.send_400_response("")
                return
            except httptools.HttpParserUpgrade as ended:
                behind = piece[ended.args[0] :]
            if self._is_handshake:
                self.handle_websocket_upgrade()
                self._hand_on(behind)
                return
            version = self.parser.get_http_version()
            piece = without_offer(self.parser.get_method(), self.url, version, self.headers) + behind
            self.parser = _parser_of(self)

    def _hand_on(self, behind: bytes) -> None:
        """Pass the bytes after a handshake to the WebSocket's protocol: they are not a request."""
        if behind and not self.lingering.is_closing():
            cast(asyncio.Protocol, self.lingering.get_protocol()).data_received(behind)

    def _take(self, piece: bytes) -> None:
        self._has_turned = False
        self.lingering.still_sending = True
        self._feed(piece)
        if self._is_upgraded or self._last_word is not None or self.lingering.is_closing():
            return
        self.lingering.still_sending = self._in_body
        if self._has_turned:
            # If it all counted for the request that began in it, that one could be refused for another's bytes.
            return
        if self._in_body:
            self._wire_bytes += len(piece)
            if self._wire_bytes > self.bounds.framing_bytes + 2 * (self._body_bytes + PIECE_BYTES):
                self._refuse(400, "the body's chunks are too small")
        else:
            self._head_bytes += len(piece)
            if self._head_bytes > self.bounds.head_bytes:
                self._refuse(431, self._head_detail())

    def _head_size(self) -> int:
        """Return the minimum length of the head: the parser drops the blanks around a value."""
        line = len(self.parser.get_method()) + len(self.url) + LINE_MARKS
        return line + sum(len(name) + len(value) + HEADER_MARKS for name, value in self.headers)

    def _head_detail(self) -> str:
        return f"a request's line and headers may have at most {self.bounds.head_bytes} bytes together"

    def _allow(self, seconds: float) -> None:
        self._stop_clock()
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._in_body or self._head_bytes:
            part = "body" if self._in_body else "head"
            seconds = self.bounds.body_s if self._in_body else self.bounds.head_s
            self._refuse(408, f"the request's {part} did not arrive within {seconds:g} seconds")
        else:
            self.lingering.close()

    def _drop(self, size: int) -> None:
        """Count received bytes that are not read."""
        self._dropped_bytes += size
        if self._dropped_bytes > self.bounds.linger_bytes:
            self.lingering.abort()

    def _refuse(self, status: int, detail: str) -> None:
        """Answer with a problem and end, after the answers to earlier requests; the refused request is not run.

        If its own answer has already begun, the connection is aborted.
        """
        self._stop_clock()
        cycle, last_word = self.cycle, self._problem(status, detail)
        if self._in_body and cycle is self._running:
            _leave(cycle)
            if cycle.response_started:
                self.lingering.abort()
            else:
                self._end_with(last_word)
            return
        if self._in_body:
            # Its turn has not come.
            self.pipeline.popleft()
        if not self._is_answering():
            self._end_with(last_word)
            return
        self._last_word = last_word
        # Only reading shows that the client has disconnected.
        self.flow.resume_reading()

    def _problem(self, status: int, detail: str) -> bytes:
        body = orjson.dumps(bare_document(status, detail))
        # RFC 6455, section 4.4
        version = b"sec-websocket-version: 13\r\n" if self._is_handshake and status == 400 else b""
        head = version + (
            b"content-type: application/problem+json\r\nx-content-type-options: nosniff\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        return STATUS_LINE[status] + head + body

    def _end_with(self, last_word: bytes) -> None:
        self.lingering.write(last_word)
        self.lingering.still_sending = True
        self.lingering.close()


def _leave(cycle: RequestResponseCycle) -> None:
    """Notify a request that its answer has no reader any more; uvicorn notifies only the last one of a connection."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


def _parser_of(protocol: BoundedHttp) -> httptools.HttpRequestParser:
    """Return another parser, made as uvicorn makes the first."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
