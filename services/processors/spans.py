"""The span of evidence that was counted, in the trace of the command that led to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from schemas.record import Event
from schemas.topics import Topics
from vitals.facts import facts_of, is_recent

if TYPE_CHECKING:
    from vitals.spans import Spans

FACTS = Topics().executions


def record_counted(spans: Spans, event: Event, kind: str) -> None:
    """Record that an event was counted as evidence of a kind."""
    if not event.meta.trace or not is_recent(event.meta.at_ms):
        return
    from opentelemetry.trace import SpanKind

    now_ns = time.time_ns()
    facts = {**facts_of(FACTS, event.key, event.body, event.meta.tenant), "placet.evidence": kind}
    spans.record("count trust", SpanKind.CONSUMER, event.meta.trace, facts, (now_ns, now_ns))
