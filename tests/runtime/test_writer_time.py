"""Time comes from the log: late approvals, wrong clocks, nudges that come early, and deadlines nobody watched."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from schemas import commands as k
from schemas.topics import Topics
from services.runtime.memory_log import MemoryLog
from tests.runtime.lab import Lab, body_of, said, types

START_MS = 1_780_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@dataclass
class Hands:
    """The broker's clock and the decider's own, both moved by hand."""

    log_ms: int = START_MS
    local_ahead_ms: int = 0

    def now(self) -> int:
        return self.log_ms

    def local(self) -> int:
        return self.log_ms + self.local_ahead_ms


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def timed(hands: Hands, seed: int) -> AsyncIterator[Lab]:
    lab = Lab(MemoryLog(Topics(), 1, hands.now), 1, random.Random(seed), local_ms=hands.local)
    try:
        yield lab
    finally:
        await lab.close()


async def held(lab: Lab, call_id: str = "pay") -> Any:
    command = k.ProposeToolCall(call_id=call_id, tool="send_money", arguments='{"amount":5}')
    return body_of(await lab.ask("x", command), "HoldOpened")


async def until(lab: Lab, name: str) -> Any:
    async with asyncio.timeout(20):
        while name not in types(facts := await lab.facts(lab.events_tp("x"))):
            await asyncio.sleep(0.01)
    return next(event for event in facts if event.type == name)


def approval(hold: Any) -> k.DecideHold:
    return k.DecideHold(hold_id=hold.hold_id, decision="approve", digest=hold.digest)


async def test_approval_55_minutes_late_while_the_decider_was_down_is_refused(
    timed: Lab, hands: Hands
) -> None:
    first = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    await first.stop()

    hands.log_ms += 55 * MINUTE_MS
    late = await timed.send("x", approval(hold), timed.rita)
    hands.log_ms += MINUTE_MS
    await timed.start_worker("two")
    trace = await timed.trace("x", late)

    assert types(trace) == ["HoldExpired", "ToolCallDenied", "DecisionRefused"]
    assert body_of(trace, "DecisionRefused").code == "expired"


async def test_approval_in_time_counts_though_decided_late(timed: Lab, hands: Hands) -> None:
    """The decider was down, not the reviewer: what counts is when the decision reached the log."""
    first = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    await first.stop()

    in_time = await timed.send("x", approval(hold), timed.rita)
    hands.log_ms += 55 * MINUTE_MS
    await timed.start_worker("two")

    assert types(await timed.trace("x", in_time)) == ["DecisionRecorded", "ToolCallReleased"]


async def test_deadline_passes_when_nothing_else_arrives(timed: Lab, hands: Hands) -> None:
    await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    await held(timed)

    hands.log_ms += 11 * MINUTE_MS
    for running in timed.workers:
        running.worker.wake()
    expired = await until(timed, "HoldExpired")

    assert expired.meta.at_ms == hands.log_ms


@pytest.mark.parametrize("ahead_ms", [3 * HOUR_MS, -3 * HOUR_MS])
async def test_decider_whose_clock_is_wrong_expires_nothing_early(
    timed: Lab, hands: Hands, ahead_ms: int
) -> None:
    hands.local_ahead_ms = ahead_ms
    await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    for running in timed.workers:
        running.worker.wake()
    await held(timed, "another")

    decided = await timed.ask("x", approval(hold), timed.rita)
    commands = await timed.raws(timed.commands_tp("x"))

    assert types(decided) == ["DecisionRecorded", "ToolCallReleased"]
    assert "HoldExpired" not in types(await timed.facts(timed.events_tp("x")))
    nudges = [raw for raw in commands if dict(raw.headers)["ce_type"].endswith(b"ExpireDue")]
    assert len(nudges) <= 2, "a wrong clock is learnt, not nudged against for ever"


async def test_writer_restarted_with_open_holds_still_watches_their_deadlines(
    timed: Lab, hands: Hands
) -> None:
    first = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    await held(timed)
    await first.stop()
    hands.log_ms += 30 * MINUTE_MS

    await timed.start_worker("two")

    assert (await until(timed, "HoldExpired")).meta.at_ms == hands.log_ms


async def test_consumed_call_without_a_result_waits_for_a_person(timed: Lab, hands: Hands) -> None:
    await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    await timed.ask("x", approval(hold), timed.rita)
    await timed.ask("x", k.ConsumeGrant(call_id="pay", digest=hold.digest, attempt_id="a"))

    hands.log_ms += HOUR_MS
    for running in timed.workers:
        running.worker.wake()
    await until(timed, "ToolCallOutcomeUnknown")
    retried = await timed.ask("x", k.ConsumeGrant(call_id="pay", digest=hold.digest, attempt_id="b"))

    assert body_of(retried, "CommandRefused").code == "already_consumed"
    facts = await timed.facts(timed.events_tp("x"))
    assert [said(e).cause for e in facts if e.type == "HoldOpened"] == ["policy", "outcome_unknown"]


async def test_log_time_never_runs_backwards(timed: Lab, hands: Hands) -> None:
    """A broker whose clock is set back must not bring an expired hold to life."""
    await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    hands.log_ms += HOUR_MS
    await timed.ask("x", k.PauseExecution(), timed.olga)

    hands.log_ms -= HOUR_MS
    trace = await timed.ask("x", approval(hold), timed.rita)

    assert body_of(trace, "DecisionRefused").code == "expired"
    times = [event.meta.at_ms for event in await timed.facts(timed.events_tp("x"))]
    assert times == sorted(times)
