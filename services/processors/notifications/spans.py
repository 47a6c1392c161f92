"""The span of a notice that is sent, in the trace of the command that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from services.processors.notifications.channel import Undelivered
from services.processors.notifications.notice import Notice

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from vitals.spans import Spans


@contextmanager
def notifying(spans: Spans, notices: Sequence[Notice], endpoint: str) -> Iterator[Span]:
    """A span around one try of sending notices; that of a digest is in the trace of its first notice with one.

    Without a trace, as after a nudge of the timer, nothing is recorded: the span would be alone in its trace.
    """
    from opentelemetry.trace import INVALID_SPAN, SpanKind

    first = next((notice for notice in notices if notice.trace), notices[0])
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
    if not first.trace:
        with spans.continuing("", facts):
            yield INVALID_SPAN
        return
    with spans.span("notify", SpanKind.CLIENT, first.trace, facts) as span:
        yield span


def mark_undelivered(span: Span, failure: Undelivered) -> None:
    """Mark the span of a try as failed, by the type of its failure."""
    from vitals.spans import failed

    failed(span, type(failure).__name__)
