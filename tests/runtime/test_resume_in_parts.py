"""A resume that no one decision could hold: the timer's nudges bring the rest, without anybody asking for it."""

import asyncio

from schemas import commands as k
from schemas.limits import ARGUMENTS_MAX_BYTES, DECISION_MAX_BYTES
from tests.runtime.lab import DEADLINE_S, Lab, types

CALLS = 6


async def test_calls_parked_in_a_pause_beyond_one_decision_are_all_released_after_the_resume(
    lab: Lab,
) -> None:
    await lab.start_worker("w")
    await lab.publish_basics()
    await lab.ask("x", k.StartExecution(agent="bot"))
    await lab.ask("x", k.PauseExecution(), lab.olga)
    arguments = '{"text":"' + "a" * (ARGUMENTS_MAX_BYTES - 11) + '"}'
    assert CALLS * len(arguments) > DECISION_MAX_BYTES
    for number in range(CALLS):
        await lab.ask("x", k.ProposeToolCall(call_id=f"c{number}", tool="read_file", arguments=arguments))

    resumed = await lab.ask("x", k.ResumeExecution(), lab.olga)
    async with asyncio.timeout(DEADLINE_S):
        while types(facts := await lab.facts(lab.events_tp("x"))).count("ToolCallReleased") < CALLS:
            await asyncio.sleep(0.05)

    assert types(resumed)[:3] == ["ExecutionResumed", "PolicyVerdictIssued", "ToolCallReleased"]
    parts = {event.meta.command_id for event in facts if event.type == "ToolCallReleased"}
    assert len(parts) > 1, "no one decision could hold them"
