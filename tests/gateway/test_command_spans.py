"""The traces of commands: that of their request, also where they are sent long after it was taken in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import Context, copy_context

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from gateway.asking import asker as asking
from gateway.asking.asker import name_of
from gateway.live.outcome import Outcome, Refused
from gateway.problems import Problem
from schemas.refusals import Refusal
from schemas.trace_context import TRACEPARENT
from tests.gateway.asking_bench import BOT, KEY, Bench, digest_of, open_bench
from tests.gateway.exporting import exporting
from tests.gateway.facts import AT_MS, log_time, refused, released
from tests.schemas.test_trace_context import TRACE
from vitals import tracing
from vitals.spans import current_trace

SEND = "send commands"
ANOTHERS = f"00-{'9' * 32}-{'8' * 16}-01"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    with exporting() as found:
        yield found


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(asking, "LOOK_AFTER_S", 0.01)
    async with open_bench() as found:
        yield found


def traces(bench: Bench) -> list[str]:
    """The trace contexts of what was sent; empty for none."""
    return [dict(record.headers).get(TRACEPARENT, b"").decode() for record in bench.topic.appended]


async def test_command_that_confirms_an_answer_is_in_the_trace_of_its_request(
    bench: Bench, exported: InMemorySpanExporter
) -> None:
    """The tail calls for it, which is in no trace, or within another's."""
    assert tracing.spans is not None
    bench.live.time = log_time(AT_MS + 60_000)
    with tracing.spans.span("request", SpanKind.SERVER, TRACE):
        asked, request = bench.ask(anew=True), current_trace()
    (command_id,) = await bench.sent(1)
    with tracing.spans.continuing(ANOTHERS):
        bench.partition.write(KEY, command_id, released(), digest=digest_of())
    _, anew_id = await bench.sent(2)
    bench.partition.write(KEY, anew_id, refused("already_consumed"), digest=digest_of())
    await asked

    assert traces(bench) == [request, request]
    assert [span.name for span in exported.get_finished_spans()].count(SEND) == 2


async def test_next_attempt_of_a_command_is_in_the_trace_of_its_request(
    bench: Bench, exported: InMemorySpanExporter
) -> None:
    """The sweep sends it, once the views told that the attempt before it was refused."""
    assert tracing.spans is not None
    name = name_of(BOT, "/route", None, ("c1",))
    first = bench.asker.ids.id_of(name, digest_of(), 0)
    bench.past.known[first] = Outcome(digest_of(), KEY, Refused(Refusal.NOT_RELEASED, ""))
    with tracing.spans.span("request", SpanKind.SERVER, TRACE):
        asked, request = bench.ask(name=name), current_trace()
    _, second = await bench.sent(2)
    bench.partition.write(KEY, second, released(), digest=digest_of())
    await asked

    assert traces(bench) == [request, request]


async def test_nothing_of_a_request_is_kept_while_nothing_is_traced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Context] = []

    def copied() -> Context:
        taken.append(copy_context())
        return taken[-1]

    monkeypatch.setattr(asking, "copy_context", copied)
    asked = bench.ask(anew=True)
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, refused("digest_mismatch"), digest=digest_of())
    await asked
    assert taken == []


async def test_command_that_may_not_be_in_the_log_has_a_span_that_has_failed(
    bench: Bench, exported: InMemorySpanExporter
) -> None:
    assert tracing.spans is not None
    bench.topic.fails = True
    with tracing.spans.span("request", SpanKind.SERVER, TRACE):
        asked = bench.ask()
    with pytest.raises(Problem, match="could not be sent"):
        await asked
    (span,) = [one for one in exported.get_finished_spans() if one.name == SEND]
    assert (span.attributes or {})["error.type"] == "unavailable"
    assert span.status.status_code is StatusCode.ERROR


async def test_command_that_is_in_the_log_has_not_failed(
    bench: Bench, exported: InMemorySpanExporter
) -> None:
    assert tracing.spans is not None
    with tracing.spans.span("request", SpanKind.SERVER, TRACE):
        asked = bench.ask()
    (command_id,) = await bench.sent(1)
    bench.partition.write(KEY, command_id, released(), digest=digest_of())
    await asked
    (span,) = [one for one in exported.get_finished_spans() if one.name == SEND]
    assert span.status.status_code is not StatusCode.ERROR
