"""Spans, and the ids in log lines, of the pieces of work of a process.

The attributes of a span are ids, names and codes: never an argument, a question, an answer or a token. Of an
exception only the type is one, because its text can quote any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    NoOpTracer,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from schemas.trace_context import is_traceparent

R = TypeVar("R")
Facts = Mapping[str, str | int]
NO_FACTS: Facts = {}
ERROR_TYPE = "error.type"
# The facts that log lines show, by their names there.
LOGGED = {
    "placet.tenant": "tenant",
    "placet.project": "project",
    "placet.execution_id": "execution_id",
    "placet.call_id": "call_id",
    "placet.hold_id": "hold_id",
}


@dataclass(slots=True)
class Work:
    """A piece of work whose end may come after its beginning has returned: the span ends with its last part."""

    span: Span
    parts: int

    def done(self) -> None:
        """End one part."""
        self.parts -= 1
        if self.parts == 0:
            self.span.end()

    def fail(self, error: BaseException) -> None:
        """Mark it as failed, and let it end with its beginning: an answer may never come to what failed to ask."""
        failed(self.span, type(error).__name__)
        self.parts = 1


_work: ContextVar[Work | None] = ContextVar("placet_work", default=None)
_ids: ContextVar[Facts] = ContextVar("placet_ids", default=NO_FACTS)


class Spans:
    """Makes spans with one tracer."""

    def __init__(self, tracer: Tracer, choose_id: Callable[[int], None] | None = None) -> None:
        """Make spans.

        Args:
            tracer: makes them.
            choose_id: gives this thread's next span an id, for `record`; None if no span is sent.
        """
        self._tracer = tracer
        self._choose_id = choose_id

    @property
    def are_sent(self) -> bool:
        """True if spans are sent, so that others may continue them."""
        return self._choose_id is not None

    @classmethod
    def unsent(cls) -> Spans:
        """Spans that are not sent: log lines still show the trace that a caller began."""
        return cls(NoOpTracer())

    @contextmanager
    def span(
        self, name: str, kind: SpanKind = SpanKind.INTERNAL, parent: str = "", facts: Facts = NO_FACTS
    ) -> Iterator[Span]:
        """A span around a block, current within it.

        Args:
            name: of the span.
            kind: its place between processes.
            parent: the trace context that it continues; by default the current span, if there is one.
            facts: its attributes.
        """
        span = self.begun(name, kind, parent, facts)
        with self.within(span, facts):
            try:
                yield span
            except BaseException as error:
                failed(span, type(error).__name__)
                raise
            finally:
                span.end()

    @contextmanager
    def work(self, name: str, kind: SpanKind, parent: str = "", facts: Facts = NO_FACTS) -> Iterator[Span]:
        """A span like `span`, which does not end before the last callback that was made by `carried` in it."""
        span = self.begun(name, kind, parent, facts)
        work = Work(span, 1)
        token = _work.set(work)
        try:
            with self.within(span, facts):
                yield span
        except BaseException as error:
            work.fail(error)
            raise
        finally:
            _work.reset(token)
            work.done()

    def carried(self, answered: Callable[[Any], R]) -> Callable[[Any], R]:
        """See `vitals.tracing.carried`."""
        work = _work.get()
        if work is None:
            return answered
        work.parts += 1
        ids = _ids.get()

        def answered_within(outcome: Any) -> R:
            # Whoever calls it, such as the tail of the log, has ids of its own or none.
            token, others = _work.set(work), _ids.set(ids)
            try:
                with self.within(work.span):
                    return answered(outcome)
            except BaseException as error:
                failed(work.span, type(error).__name__)
                raise
            finally:
                _ids.reset(others)
                _work.reset(token)
                work.done()

        return answered_within

    def begun(
        self, name: str, kind: SpanKind = SpanKind.INTERNAL, parent: str = "", facts: Facts = NO_FACTS
    ) -> Span:
        """A span that began now and is not current; its maker ends it."""
        context = context_of(parent) if parent else None
        return self._tracer.start_span(name, context, kind, facts, record_exception=False)

    @contextmanager
    def continuing(self, trace: str, facts: Facts = NO_FACTS) -> Iterator[None]:
        """Within a block log lines have the ids in `facts`, and those of a trace context unless it is empty."""
        span = NonRecordingSpan(span_context_of(trace)) if trace else INVALID_SPAN
        with self.within(span, facts):
            yield

    @contextmanager
    def within(self, span: Span, facts: Facts = NO_FACTS) -> Iterator[None]:
        """Make a span current within a block, with its ids in the block's log lines."""
        token, ids = attach(set_span_in_context(span)), _ids.set(_with(facts))
        try:
            yield
        finally:
            _ids.reset(ids)
            detach(token)

    def record(
        self,
        name: str,
        kind: SpanKind,
        parent: str,
        facts: Facts,
        between_ns: tuple[int, int],
        link: str = "",
        span_id: str = "",
    ) -> None:
        """Record a span that is over.

        Args:
            name: of the span.
            kind: its place between processes.
            parent: the trace context that it continues.
            facts: its attributes; one with `error.type` has failed.
            between_ns: when it began and ended, in ns since the epoch.
            link: the trace context of another trace that it has to do with; empty for none.
            span_id: its id, in hex, that others know already; by default a new one.
        """
        if span_id and self._choose_id is not None:
            self._choose_id(int(span_id, 16))
        began_ns, ended_ns = between_ns
        links = [Link(span_context_of(link))] if link else None
        context = context_of(parent) if parent else None
        span = self._tracer.start_span(name, context, kind, facts, links, began_ns)
        if ERROR_TYPE in facts:
            span.set_status(StatusCode.ERROR)
        span.end(max(began_ns, ended_ns))

    def note(self, facts: Facts) -> None:
        """Add facts to the current span and to the log lines of the piece of work in hand."""
        get_current_span().set_attributes(facts)
        _ids.set(_with(facts))

    def fail(self, why: str) -> None:
        """Mark the current span as failed; see `failed`."""
        failed(get_current_span(), why)


def ids_in_hand() -> Facts:
    """The ids of the piece of work in hand, as log lines show them."""
    return _ids.get()


def _with(facts: Facts) -> Facts:
    """The ids of the piece of work in hand, and those among some facts."""
    known = _ids.get()
    return {**known, **{LOGGED[name]: value for name, value in facts.items() if name in LOGGED and value}}


def failed(span: Span, why: str) -> None:
    """Mark a span as failed, by the type of an error or the code of a refusal."""
    span.set_attribute(ERROR_TYPE, why)
    span.set_status(StatusCode.ERROR)


def current_trace() -> str:
    """The trace context of the current span; empty without one."""
    return trace_of(get_current_span())


def trace_of(span: Span) -> str:
    """The trace context by which another process continues a span; empty for no valid span."""
    found = span.get_span_context()
    if not found.is_valid:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def span_context_of(trace: str) -> SpanContext:
    """The span that a well-formed trace context names."""
    flags = TraceFlags(int(trace[53:55], 16))
    return SpanContext(int(trace[3:35], 16), int(trace[36:52], 16), is_remote=True, trace_flags=flags)


def context_of(trace: str) -> Context:
    """A context in which the span that a well-formed trace context names is current."""
    return set_span_in_context(NonRecordingSpan(span_context_of(trace)), Context())


def trace_said(text: str | None) -> str:
    """The trace context that a client sent; empty if there is none or it is malformed."""
    return text if text is not None and is_traceparent(text) else ""
