"""The span of each HTTP request, which continues the trace in its header `traceparent`."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.trace import Span, SpanKind
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.trace_context import TRACEPARENT
from vitals.spans import Spans, failed, trace_said

# Asked every second by machines.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
STREAM = b"text/event-stream"


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
        parent = trace_said(Headers(scope=scope).get(TRACEPARENT))
        span = self.spans.begun(method, SpanKind.SERVER, parent, {"http.request.method": method})

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                _answered(span, method, scope, message)
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


def _answered(span: Span, method: str, scope: Scope, message: Message) -> None:
    status = message["status"]
    span.set_attribute("http.response.status_code", status)
    if (route := getattr(scope.get("route"), "path", None)) is not None:
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)
    if status >= 500:
        failed(span, str(status))
    # It may last for hours, and no single piece of work is done in it.
    if any(name == b"content-type" and value.startswith(STREAM) for name, value in _heads(message)):
        span.end()


def _heads(message: Message) -> Iterable[tuple[bytes, bytes]]:
    heads: Iterable[tuple[bytes, bytes]] = message.get("headers", ())
    return heads
