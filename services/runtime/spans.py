"""The span of a decision: a command's events continue its trace.

OpenTelemetry is imported only where a process traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.commands import ExpireDue
from schemas.message import Message
from schemas.record import Command
from vitals.facts import facts_of, of_record, outcome_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from vitals.spans import Spans


@dataclass(slots=True)
class Traced:
    """A command that is being decided, in the trace context that its events get."""

    command: Command
    span: Span | None

    def note(self, events: Sequence[Message]) -> None:
        """Add what was decided to the span."""
        if self.span is None:
            return
        for body in events:
            if outcome := outcome_of(body):
                self.span.set_attributes(outcome)


@contextmanager
def deciding(spans: Spans, command: Command, topic: str) -> Iterator[Traced]:
    """A span around a decision. The timer's nudges have none: there are many, and most of them do nothing."""
    if isinstance(command.body, ExpireDue):
        yield Traced(command, None)
        return
    from opentelemetry.trace import SpanKind

    from vitals.spans import trace_of

    facts = {
        **facts_of(topic, command.key, command.body, command.actor.tenant),
        **of_record(topic, command.partition, command.offset, "decide"),
    }
    name = f"decide {type(command.body).__name__}"
    with spans.span(name, SpanKind.CONSUMER, command.trace, facts) as span:
        yield Traced(command._replace(trace=trace_of(span) or command.trace), span)
