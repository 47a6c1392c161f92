"""The span of each call of gRPC, which continues the trace in its metadata `traceparent`.

A span has failed only by a status that OpenTelemetry's conventions count against a server: a refusal for what the
caller did is an answer like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc import StatusCode

from gateway.rpc.metadata import Context
from gateway.rpc.statuses import CODE
from schemas.trace_context import TRACEPARENT, is_traceparent
from vitals import tracing

FAULTS = frozenset(
    {
        StatusCode.UNKNOWN,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.UNIMPLEMENTED,
        StatusCode.INTERNAL,
        StatusCode.UNAVAILABLE,
        StatusCode.DATA_LOSS,
    }
)


@contextmanager
def call_span(path: str, context: Context) -> Iterator[None]:
    """A span around a call, with the status that it is ended with; `path` is `/SERVICE/METHOD`.

    A stream has none: it can last for hours, and only passes its trace on.
    """
    if tracing.spans is None:
        yield
        return
    from opentelemetry.trace import SpanKind

    from vitals.spans import failed

    service, _, method = path.removeprefix("/").rpartition("/")
    facts = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}
    span = tracing.spans.begun(f"{service}/{method}", SpanKind.SERVER, _said(context), facts)
    status = StatusCode.UNKNOWN
    try:
        with tracing.spans.within(span, facts):
            yield
        status = StatusCode.OK
    except grpc.aio.AbortError:
        status = _status(context)
        raise
    except BaseException as error:
        # One that nobody handles is answered as UNKNOWN. Whoever has gone away is told nothing, nor is a client that
        # gRPC itself has answered, as for a message that is too long.
        is_unhandled = isinstance(error, Exception) and not context.done()
        status = StatusCode.UNKNOWN if is_unhandled else StatusCode.CANCELLED
        raise
    finally:
        span.set_attribute("rpc.grpc.status_code", status.value[0])
        if code := _refusal(context):
            span.set_attribute("placet.refusal_code", code)
        if status in FAULTS:
            failed(span, status.name)
        span.end()


def _status(context: Context) -> StatusCode:
    """The status with which a call was ended; grpcio tells it as a number or as itself."""
    said: Any = context.code()
    return said if isinstance(said, StatusCode) else next(one for one in StatusCode if one.value[0] == said)


def _refusal(context: Context) -> str:
    """The code of the refusal that ends a call; empty for none."""
    return next((str(value) for name, value in context.trailing_metadata() or () if name == CODE), "")


def trace_to_continue(context: Context) -> str:
    """Return the trace context for the gateway: the current span's, else the client's; empty without one."""
    if tracing.spans is not None:
        from vitals.spans import current_trace

        if trace := current_trace():
            return trace
    return _said(context)


def _said(context: Context) -> str:
    said = [value for name, value in context.invocation_metadata() or () if name == TRACEPARENT]
    return said[0] if len(said) == 1 and isinstance(said[0], str) and is_traceparent(said[0]) else ""
