"""The spans of decisions. A command's events continue its trace: they carry the id of the decision's span.

That span is recorded once the events are in the log, with the id that was chosen before: so no client waits for it,
and a decision that does not count, because its batch landed elsewhere, has none. A command without a trace context
has no span, and neither has a nudge of the timer.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from schemas.message import Message
from schemas.record import Command
from vitals.facts import facts_of, of_record, outcome_of

if TYPE_CHECKING:
    from vitals.spans import Spans

TRACE_CHARS = 36
SPAN_CHARS = 16


class TracedDecision(NamedTuple):
    """A decision whose span is to be recorded: `command` has the context before it, `span_id` is its own."""

    command: Command
    span_id: str
    began_ns: int
    ended_ns: int
    events: Sequence[Message]


def within_decision(command: Command, span_id: str) -> Command:
    """The command in the trace context that its events get."""
    trace = command.trace
    return command._replace(trace=f"{trace[:TRACE_CHARS]}{span_id}{trace[TRACE_CHARS + SPAN_CHARS :]}")


def new_span_id() -> str:
    """A random id of a span, in hex."""
    return f"{secrets.randbits(64) or 1:016x}"


@contextmanager
def logged(spans: Spans, command: Command, topic: str) -> Iterator[None]:
    """Within this context log lines have the ids of a command."""
    facts = facts_of(topic, command.key, command.body, command.actor.tenant)
    with spans.continuing(command.trace, facts):
        yield


def record_decisions(spans: Spans, topic: str, decisions: Sequence[TracedDecision]) -> None:
    """Record the spans of decisions whose events are in the log; `topic` is the commands'."""
    from opentelemetry.trace import SpanKind

    for command, span_id, began_ns, ended_ns, events in decisions:
        facts = {
            **facts_of(topic, command.key, command.body, command.actor.tenant),
            **of_record(topic, command.partition, command.offset, "decide"),
        }
        for body in events:
            facts.update(outcome_of(body) or {})
        name = f"decide {type(command.body).__name__}"
        spans.record(name, SpanKind.CONSUMER, command.trace, facts, (began_ns, ended_ns), span_id=span_id)


def now_ns() -> int:
    """The time, in ns since the epoch."""
    return time.time_ns()
