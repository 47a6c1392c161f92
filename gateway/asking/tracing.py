"""The trace context of a command, and the span of its way into the log."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.asking.outbox import QueuedCommand
from vitals.facts import KAFKA, facts_of

if TYPE_CHECKING:
    from vitals.spans import Spans


def traced(spans: Spans, queued: QueuedCommand) -> QueuedCommand:
    """Return a command in the trace of its request; unchanged outside any traced request.

    The decision continues the request's span. The span of the command's way is recorded once it is in the log: then
    this process waits for the decision anyway, and the client does not wait for the span.
    """
    from vitals.spans import current_trace

    if not (trace := current_trace()):
        # A command that the gateway sends of its own accord.
        return queued
    began_ns = time.time_ns()

    def left() -> None:
        queued.left()
        _record(spans, queued, trace, began_ns)

    def lost(reason: str) -> None:
        queued.failed(reason)
        _record(spans, queued, trace, began_ns, {"error.type": "unavailable"})

    return queued._replace(draft=replace(queued.draft, trace=trace), left=left, failed=lost)


def _record(
    spans: Spans, queued: QueuedCommand, trace: str, began_ns: int, more: dict[str, str | int] | None = None
) -> None:
    from opentelemetry.trace import SpanKind

    draft, topic = queued.draft, queued.topic
    facts = {
        **facts_of(topic, draft.key, draft.body, draft.actor.tenant),
        "messaging.system": KAFKA,
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": topic,
        "messaging.message.id": draft.command_id,
        **(more or {}),
    }
    spans.record(f"send {topic}", SpanKind.PRODUCER, trace, facts, (began_ns, time.time_ns()))
