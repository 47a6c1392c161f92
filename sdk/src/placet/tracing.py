"""The spans of an agent, by OpenTelemetry, and the trace context that its requests carry to the gateway.

They are made if the process has OpenTelemetry's SDK in use, or if the standard variables ask for it
(`OTEL_EXPORTER_OTLP_ENDPOINT` and others; `pip install placet[otel]`). Otherwise nothing of it is imported, and each
request pays one check.

A span has ids, names and codes as attributes: never an argument, a question, an answer or a token.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placet.errors import Refused, is_an_answer

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

SDK = "opentelemetry.sdk.trace"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_tracer: Tracer | None = None
_was_asked = False
_is_decided = False
# Reentrant: what is done under it may log a warning, and a program's handler of it may call Placet.
_deciding = threading.RLock()


def current() -> str:
    """The trace context of the current span (the W3C header `traceparent`); empty if nothing is traced."""
    # Not `_found`, which loads OpenTelemetry where it is asked for: a command of the terminal makes no span.
    if _tracer is None and SDK not in sys.modules:
        return ""
    from opentelemetry.trace import get_current_span

    return _trace_of(get_current_span())


@contextmanager
def span(name: str, facts: Mapping[str, str], trace: str = "", *, is_request: bool = True) -> Iterator[str]:
    """A span around a block, current within it; yields its trace context, empty if nothing is traced.

    Args:
        name: of the span.
        facts: its attributes.
        trace: the trace context that it continues; by default the current span, if there is one.
        is_request: False if it is work of this process and not a request to the gateway.
    """
    tracer = _found()
    if tracer is None:
        yield ""
        return
    from opentelemetry.trace import SpanKind, StatusCode, use_span

    context = _context_of(trace) if trace else None
    kind = SpanKind.CLIENT if is_request else SpanKind.INTERNAL
    made = tracer.start_span(name, context, kind, facts, record_exception=False)
    try:
        with use_span(made, record_exception=False, set_status_on_exception=False):
            yield _trace_of(made)
    except BaseException as error:
        if isinstance(error, Refused):
            made.set_attribute("placet.refusal_code", error.code)
        # A function of the agent has failed by whatever it raises, a request only if it was not answered.
        if not is_request or not is_an_answer(error):
            made.set_attribute("error.type", type(error).__name__)
            made.set_status(StatusCode.ERROR)
        raise
    finally:
        made.end()


@contextmanager
def continuing(trace: str) -> Iterator[None]:
    """Send the requests of a block as parts of a trace, without a span; does nothing if nothing is traced."""
    if not trace or _found() is None:
        yield
        return
    from opentelemetry.context import attach, detach

    token = attach(_context_of(trace))
    try:
        yield
    finally:
        detach(token)


def facts_of_call(execution_id: str, call_id: str, tool: str) -> dict[str, str]:
    """The attributes of a span about a call."""
    return {"placet.execution_id": execution_id, "placet.call_id": call_id, "placet.tool": tool}


def _found() -> Tracer | None:
    if _tracer is not None or (_is_decided and SDK not in sys.modules):
        return _tracer
    # The first calls of several threads wait here: all are traced, or none.
    with _deciding:
        return _decided() if _tracer is None else _tracer


def _decided() -> Tracer | None:
    global _tracer, _was_asked, _is_decided
    is_asked = not _was_asked and is_asked_for(os.environ)
    _was_asked = True
    if is_asked or SDK in sys.modules:
        from placet import otlp

        made = otlp.tracer() if is_asked else None
        if made is None and SDK in sys.modules:
            # The program uses OpenTelemetry itself, so its own provider gets the spans.
            made = otlp.tracer_of_program()
        if made is not None:
            _tracer = made
    _is_decided = True
    return _tracer


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """True if the variables of OpenTelemetry ask for spans by OTLP."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter == "otlp" or (not exporter and any(environ.get(name) for name in ENDPOINTS))


def _trace_of(made: Span) -> str:
    found = made.get_span_context()
    if not found.is_valid:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def _context_of(trace: str) -> Context:
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    flags = TraceFlags(int(trace[53:55], 16))
    context = SpanContext(int(trace[3:35], 16), int(trace[36:52], 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(context), Context())
