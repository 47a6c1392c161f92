"""A decider that does not trace itself still hands the trace context of a command on to each of its events."""

from __future__ import annotations

from dataclasses import replace

from schemas import commands as k
from schemas.envelope import Draft
from schemas.ids import execution_key
from tests.runtime.lab import PROJECT, TENANT, Lab
from tests.schemas.test_trace_context import TRACE


async def test_events_of_a_command_have_its_context(lab: Lab) -> None:
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
    assert {event.meta.trace for event in found} == {TRACE}
    others = [event for event in await lab.facts(lab.events_tp("x")) if event.meta.command_id != "traced"]
    assert {event.meta.trace for event in others} == {""}
