"""The span of a wait for a person: linked to the trace of whoever decided, and to no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from projections.spans import ProjectorSpans
from schemas.ids import execution_key
from schemas.message import Message
from schemas.record import Event, EventMeta
from tests.gateway.exporting import exporting
from tests.processors.notifications.holds import cancelled, decided, expired
from tests.schemas.test_trace_context import TRACE
from vitals import tracing

WAIT = "wait for a person"
CLOSING = f"00-{'9' * 32}-{'8' * 16}-01"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    with exporting() as found:
        yield found


@pytest.mark.parametrize(
    ("closing", "status", "links"),
    [
        (decided("h1"), "approved", [CLOSING[3:35]]),
        (cancelled("h1"), "cancelled", [CLOSING[3:35]]),
        # The decider recorded it with whichever command came first after the deadline.
        (expired("h1"), "expired", []),
    ],
)
def test_wait_that_a_deadline_ended_links_to_no_trace(
    exported: InMemorySpanExporter, closing: Message, status: str, links: list[str]
) -> None:
    assert tracing.spans is not None
    now_ms = time.time_ns() // 1_000_000
    event = Event(
        closing,
        EventMeta("e", now_ms, 1, 1, "c", "d", "acme", 1, CLOSING),
        execution_key("acme", "main", "e1"),
        0,
        5,
    )
    hold: Any = {"status": status, "trace": TRACE, "call_id": "c1", "opened_at_ms": now_ms - 1_000}
    spans = ProjectorSpans(tracing.spans, "placet.executions")
    spans.begin()
    spans.folded(event, hold)
    spans.written()

    (wait,) = [span for span in exported.get_finished_spans() if span.name == WAIT]
    assert wait.context is not None
    assert f"{wait.context.trace_id:032x}" == TRACE[3:35]
    assert [f"{link.context.trace_id:032x}" for link in wait.links] == links
