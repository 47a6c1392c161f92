"""The span of a try of sending notices: in the trace of its fact, and failed if nobody took them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from services.processors.notifications.spans import notifying
from tests.gateway.exporting import exporting
from tests.processors.notifications.holds import notice
from tests.processors.notifications.test_sender import DOWN, World, world
from tests.schemas.test_trace_context import TRACE
from vitals import tracing
from vitals.spans import ids_in_hand

__all__ = ["world"]


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    with exporting() as found:
        yield found


async def test_try_that_nobody_took_has_failed_and_the_next_one_has_not(
    world: World, exported: InMemorySpanExporter
) -> None:
    world.receiver.answer = lambda number: DOWN if number == 0 else (200, {})
    world.queue(notice(1, trace=TRACE))
    await world.work(world.now_ms + 600_000)

    failed, taken = exported.get_finished_spans()
    assert [span.name for span in (failed, taken)] == ["notify", "notify"]
    assert ((failed.attributes or {})["error.type"], failed.status.status_code) == (
        "Undelivered",
        StatusCode.ERROR,
    )
    assert failed.status.description is None
    assert "error.type" not in (taken.attributes or {})
    assert taken.status.status_code is not StatusCode.ERROR


async def test_notice_without_a_trace_has_no_span_and_is_sent(
    world: World, exported: InMemorySpanExporter
) -> None:
    world.receiver.answer = lambda number: DOWN if number == 0 else (200, {})
    world.queue(notice(1, "hold_reminded"))
    await world.work(world.now_ms + 600_000)
    assert [found.status for found in world.receiver.requests] == [503, 200]
    assert exported.get_finished_spans() == ()


def test_log_lines_about_a_notice_without_a_trace_have_its_ids(exported: InMemorySpanExporter) -> None:
    assert tracing.spans is not None
    with notifying(tracing.spans, [notice(1)], "n/1") as span:
        assert not span.is_recording()
        ids = dict(ids_in_hand())
    assert (ids["execution_id"], ids["hold_id"], ids["call_id"]) == ("e1", "h1", "c1")
    assert exported.get_finished_spans() == ()


def test_digest_is_in_the_trace_of_its_first_notice_that_has_one(exported: InMemorySpanExporter) -> None:
    assert tracing.spans is not None
    with notifying(tracing.spans, [notice(1), notice(2, trace=TRACE), notice(3)], "n/1"):
        pass
    (span,) = exported.get_finished_spans()
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == TRACE[3:35]
    assert (span.attributes or {})["placet.hold_id"] == "h2"
    assert (span.attributes or {})["placet.notices"] == 3
