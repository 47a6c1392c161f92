"""A decider hands the trace context of a command on to its events: that of its own span if it sends spans."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan

from schemas import commands as k
from schemas.envelope import Draft
from schemas.ids import execution_key
from tests.runtime.lab import PROJECT, TENANT, Lab
from tests.schemas.test_trace_context import TRACE
from vitals import tracing
from vitals.otlp import ChosenIds
from vitals.spans import Spans, trace_of


async def decided(lab: Lab) -> set[str]:
    """The trace contexts of the events of a traced proposal."""
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    key = execution_key(TENANT, PROJECT, "x")
    command = k.ProposeToolCall(call_id="pay", tool="send_money", arguments='{"amount":5}')
    draft = Draft(command, lab.agent, "traced", key)
    (record,) = lab.signer.sign([replace(draft, trace=TRACE)])
    await lab.log.send(lab.commands_tp("x"), record)

    found = await lab.trace("x", "traced")
    assert [event.type for event in found] == ["ToolCallProposed", "PolicyVerdictIssued", "HoldOpened"]
    others = [event for event in await lab.facts(lab.events_tp("x")) if event.meta.command_id != "traced"]
    assert {event.meta.trace for event in others} == {""}
    return {event.meta.trace for event in found}


@pytest.mark.parametrize("spans", [None, Spans.unsent()], ids=["off", "JSON logs alone"])
async def test_events_of_a_command_have_its_context(lab: Lab, spans: Spans | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "spans", spans)
        assert await decided(lab) == {TRACE}


async def test_events_of_a_command_have_the_context_of_the_span_of_the_decision(lab: Lab) -> None:
    exported, ids = InMemorySpanExporter(), ChosenIds()
    provider = TracerProvider(shutdown_on_exit=False, id_generator=ids)
    provider.add_span_processor(SimpleSpanProcessor(exported))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "spans", Spans(provider.get_tracer("test"), ids.choose))
        (trace,) = await decided(lab)
        async with asyncio.timeout(20):
            while not (spans := exported.get_finished_spans()):
                await asyncio.sleep(0.01)
    (span,) = spans
    assert span.name == "decide ProposeToolCall"
    assert span.context is not None
    assert (trace_of(NonRecordingSpan(span.context)), trace[:36]) == (trace, TRACE[:36])
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == TRACE[36:52]
    assert (span.attributes or {})["placet.verdict"] == "hold"
