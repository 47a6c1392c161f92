"""The span of a command on its way into the log; its trace context is the command's header `traceparent`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.asking.outbox import QueuedCommand
from vitals.facts import KAFKA, facts_of

if TYPE_CHECKING:
    from vitals.spans import Spans


def traced(spans: Spans, queued: QueuedCommand) -> QueuedCommand:
    """Return a command with a span from now until it is in the log; unchanged outside any traced request."""
    from opentelemetry.trace import SpanKind

    from vitals.spans import current_trace, failed, trace_of

    if not current_trace():
        # A command that the gateway sends of its own accord, or again without its request.
        return queued
    draft, topic = queued.draft, queued.topic
    facts = {
        **facts_of(topic, draft.key, draft.body, draft.actor.tenant),
        "messaging.system": KAFKA,
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.destination.name": topic,
        "messaging.message.id": draft.command_id,
    }
    span = spans.begun(f"send {topic}", SpanKind.PRODUCER, facts=facts)

    def left() -> None:
        span.end()
        queued.left()

    def lost(reason: str) -> None:
        failed(span, "unavailable")
        span.end()
        queued.failed(reason)

    return queued._replace(draft=replace(draft, trace=trace_of(span)), left=left, failed=lost)
