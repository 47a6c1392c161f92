"""The span of each HTTP request, which continues the trace in its header `traceparent`.

It has the attributes that OpenTelemetry's conventions require of a server, but the path only of a request that a
route takes: it then consists of names and ids, while any other could be anything. A query is never told.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.trace import Span, SpanKind
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.token_text import without_tokens
from schemas.trace_context import TRACEPARENT
from vitals.spans import Spans, failed, trace_said

# Asked every second by machines.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
STREAM = b"text/event-stream"
# The methods that the conventions know; others would give spans as many names as callers think of.
METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
OTHER, OTHERS_NAME = "_OTHER", "HTTP"
PATH_MAX_CHARS = 1_024


class RequestSpans:
    """Middleware: a span around each request; that of a stream ends when the stream begins."""

    def __init__(self, app: ASGIApp, spans: Spans) -> None:
        """Wrap an application."""
        self.app = app
        self.spans = spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in UNTRACED:
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        name = method if method in METHODS else OTHERS_NAME
        parent = trace_said(Headers(scope=scope).get(TRACEPARENT))
        facts = {
            "http.request.method": method if method in METHODS else OTHER,
            "url.scheme": scope.get("scheme", "http"),
        }
        span = self.spans.begun(name, SpanKind.SERVER, parent, facts)

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                _answered(span, name, scope, message)
            await send(message)

        with self.spans.within(span):
            try:
                await self.app(scope, receive, traced)
            except BaseException as error:
                # That of a stream has ended.
                if span.is_recording():
                    failed(span, type(error).__name__)
                raise
            finally:
                if span.is_recording():
                    span.end()


def _answered(span: Span, name: str, scope: Scope, message: Message) -> None:
    status = message["status"]
    span.set_attribute("http.response.status_code", status)
    if (route := getattr(scope.get("route"), "path", None)) is not None:
        span.update_name(f"{name} {route}")
        span.set_attribute("http.route", route)
        span.set_attribute("url.path", _path(scope))
    if status >= 500:
        failed(span, str(status))
    # It may last for hours, and no single piece of work is done in it.
    if any(name == b"content-type" and value.startswith(STREAM) for name, value in _heads(message)):
        span.end()


def _path(scope: Scope) -> str:
    """The path as it was sent, without the query and without tokens."""
    raw: bytes | None = scope.get("raw_path")
    sent = scope["path"] if raw is None else raw.partition(b"?")[0].decode("ascii", "replace")
    # Masked before it is cut: a part of a token has not the form of one.
    return without_tokens(str(sent))[:PATH_MAX_CHARS]


def _heads(message: Message) -> Iterable[tuple[bytes, bytes]]:
    heads: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
    return heads
