"""The span of each call of gRPC, which continues the trace in its metadata `traceparent`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import grpc
from google.protobuf.message import Message

from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.trace_context import TRACEPARENT, is_traceparent
from vitals import tracing

Context = grpc.aio.ServicerContext[Any, Any]


def call_span(context: Context, request: Message) -> AbstractContextManager[Any]:
    """Return a span for a call; none for a stream, which can last for hours and only passes its trace on."""
    if tracing.spans is None or isinstance(request, pb.WatchHumanInputRequest):
        return nullcontext()
    from opentelemetry.trace import SpanKind

    method = request.DESCRIPTOR.name.removesuffix("Request")
    facts = {"rpc.system": "grpc", "rpc.method": method}
    return tracing.spans.span(f"grpc {method}", SpanKind.SERVER, _said(context), facts)


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
