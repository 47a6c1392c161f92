"""Time comes from the log: late approvals, wrong clocks, nudges that come early, and deadlines nobody watched."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from log.memory.log import MemoryLog
from schemas import commands as k
from schemas.limits import CLOCK_LEAD_MAX_MS
from schemas.topics import Topics
from services.runtime.clock import wall_ms
from tests.runtime.lab import Lab, Running, body_of, said, types

START_MS = 1_780_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@dataclass
class Hands:
    """The broker's clock and the decider's own, both moved by hand."""

    log_ms: int = START_MS
    local_ahead_ms: int = 0
    broker_ahead_ms: int = 0

    def now(self) -> int:
        return self.log_ms + self.broker_ahead_ms

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


@pytest.mark.parametrize("ahead_ms", [CLOCK_LEAD_MAX_MS, -CLOCK_LEAD_MAX_MS])
async def test_decider_whose_clock_is_a_little_wrong_expires_nothing_early(
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

    assert types(decided) == ["DecisionRecorded", "ToolCallReleased"]
    assert "HoldExpired" not in types(await timed.facts(timed.events_tp("x")))
    assert len(await nudges(timed)) <= 2, "a wrong clock is learnt, not nudged against for ever"


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


@pytest.mark.parametrize("ahead_ms", [3 * HOUR_MS, -3 * HOUR_MS])
async def test_case_28_broker_clock_that_is_hours_off_for_a_while_releases_nothing_past_its_deadline(
    timed: Lab, hands: Hands, ahead_ms: int
) -> None:
    """What comes meanwhile waits; afterwards time goes on from where it was, not from where the clock had been."""
    running = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    late = await held(timed, "late")
    hands.log_ms += 11 * MINUTE_MS - 5_000
    fresh = await held(timed, "fresh")

    hands.broker_ahead_ms = ahead_ms
    too_late = await timed.send("x", approval(late), timed.rita)
    await troubled(running)
    hands.log_ms += 10_000
    waiting = await timed.send(
        "x", k.ProposeToolCall(call_id="meanwhile", tool="send_money", arguments='{"amount":5}')
    )
    assert "clock" in running.worker.trouble
    hands.broker_ahead_ms = 0
    hold = body_of(await timed.trace("x", waiting), "HoldOpened")
    released = await timed.ask("x", approval(fresh), timed.rita)

    assert body_of(await timed.trace("x", too_late), "DecisionRefused").code == "expired"
    assert hold.deadline_at_ms == hands.log_ms + 10 * MINUTE_MS
    assert "ToolCallReleased" in types(released)
    assert running.worker.trouble == ""
    facts = await timed.facts(timed.events_tp("x"))
    assert max(event.meta.at_ms for event in facts) <= hands.log_ms + CLOCK_LEAD_MAX_MS


@pytest.mark.parametrize("ahead_ms", [3 * HOUR_MS, -3 * HOUR_MS])
async def test_case_28_decider_whose_clock_is_hours_off_decides_nothing_and_says_so(
    timed: Lab, hands: Hands, ahead_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot know which of the two clocks is wrong, and what it wrote would stay in the log for ever."""
    first = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hold = await held(timed)
    await first.stop()

    hands.local_ahead_ms = ahead_ms
    running = await timed.start_worker("two")
    approved = await timed.send("x", approval(hold), timed.rita)
    await troubled(running)
    assert approved not in [e.meta.command_id for e in await timed.facts(timed.events_tp("x"))]
    assert "nothing is decided: the " in caplog.text
    assert "180 min" in caplog.text
    hands.local_ahead_ms = 0

    assert "ToolCallReleased" in types(await timed.trace("x", approved))
    facts = await timed.facts(timed.events_tp("x"))
    assert max(event.meta.at_ms for event in facts) == hands.log_ms


async def test_case_28_decider_beside_a_broker_whose_clock_differs_decides_once_they_agree(lab: Lab) -> None:
    """On a real broker too: its stamps are what is compared."""
    off_ms, clock = [-3 * HOUR_MS], getattr(lab.log, "_now_ms", wall_ms)
    lab.local_ms = lambda: clock() + off_ms[0]
    running = await lab.start_worker("one")
    start = await lab.send("x", k.StartExecution(agent="bot"))
    await troubled(running)
    assert "ExecutionStarted" not in types(await lab.facts(lab.events_tp("x")))

    off_ms[0] = 0

    assert types(await lab.trace("x", start)) == ["ExecutionStarted"]


async def test_case_28_log_whose_time_is_ahead_of_both_clocks_is_decided_when_they_have_caught_up(
    timed: Lab, hands: Hands
) -> None:
    """A machine whose clock was hours ahead, for the broker and the decider alike, and was then set right."""
    running = await timed.start_worker("one")
    await timed.publish_basics()
    await timed.ask("x", k.StartExecution(agent="bot"))
    hands.log_ms += HOUR_MS
    hold = await held(timed)
    hands.log_ms -= HOUR_MS

    approved = await timed.send("x", approval(hold), timed.rita)
    await troubled(running)
    assert "the log's time is 60 min ahead" in running.worker.trouble
    assert approved not in [e.meta.command_id for e in await timed.facts(timed.events_tp("x"))]
    hands.log_ms += HOUR_MS + 10 * MINUTE_MS

    assert body_of(await timed.trace("x", approved), "DecisionRefused").code == "expired"
    times = [event.meta.at_ms for event in await timed.facts(timed.events_tp("x"))]
    assert times == sorted(times)


async def troubled(running: Running) -> None:
    async with asyncio.timeout(20):
        while not running.worker.trouble:
            await asyncio.sleep(0.01)


async def nudges(lab: Lab) -> list[Any]:
    """The timer's nudges, without those that only ask for the time."""
    found = []
    for raw in await lab.raws(lab.commands_tp("x")):
        is_nudge = dict(raw.headers)["ce_type"].endswith(b"ExpireDue")
        if is_nudge and not raw.key.startswith(b"placet/clock/"):
            found.append(raw)
    return found
