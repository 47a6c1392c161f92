"""The span of a notice that is sent, in the trace of the command that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from services.processors.notifications.notice import Notice

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from vitals.spans import Spans


@contextmanager
def notifying(spans: Spans, notices: Sequence[Notice], endpoint: str) -> Iterator[Span]:
    """A span around one try of sending notices; that of a digest is in the trace of its first notice."""
    from opentelemetry.trace import SpanKind

    first = notices[0]
    facts: dict[str, str | int] = {
        "placet.tenant": first.tenant,
        "placet.project": first.project,
        "placet.execution_id": first.execution_id,
        "placet.hold_id": first.hold_id,
        "placet.notice": first.type,
        "placet.notices": len(notices),
        "placet.endpoint": endpoint,
    }
    if first.hold.call_id:
        facts["placet.call_id"] = first.hold.call_id
    with spans.span("notify", SpanKind.CLIENT, first.trace, facts) as span:
        yield span
