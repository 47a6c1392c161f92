"""What large commands may take of a decider: a tenant's share of its time, and nobody else waits for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.message import Message
from schemas.refusals import Refusal
from services.runtime.large_commands import FREE_CHARS, FREE_S, LargeCommands, chars_of
from services.runtime.shares import BURST_S, PART, Shares
from tests.domain.steps import consumed, decided, proposed, reported, started
from tests.domain.world import BOT, OLGA, RITA, World, names, the

# Beyond what is free, it takes the whole burst and a little of what comes after.
COST_S = BURST_S + 2 * FREE_S
LARGE = canonical({"amount": 5, "to": "x" * FREE_CHARS})


class Clock:
    """Each look at it is later while `costly`: so much each decision takes."""

    def __init__(self) -> None:
        self.now_s, self.costly, self.cost_s = 100.0, True, COST_S

    def __call__(self) -> float:
        self.now_s += self.cost_s if self.costly else FREE_S
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(clock: Clock) -> World:
    return sharing(started(), shares_of(clock))


def shares_of(clock: Clock) -> LargeCommands:
    def now_s() -> float:
        return clock.now_s

    return LargeCommands(Shares(now_s), Shares(now_s), clock)


def sharing(world: World, large: LargeCommands) -> World:
    world.partition.large = large
    return world


def codes(events: list[Message]) -> list[Any]:
    return [getattr(event, "code", None) for event in events]


def test_large_calls_of_a_tenant_are_put_off_until_time_has_given_some_back(
    world: World, clock: Clock
) -> None:
    assert "HoldOpened" in names(proposed(world, "pay", "one", LARGE))
    refused = proposed(world, "pay", "two", LARGE)
    assert codes(refused) == [Refusal.QUOTA]
    assert "ask again" in the(refused, "CommandRefused").detail
    assert "two" not in world.state().calls
    clock.now_s += BURST_S / PART
    assert "HoldOpened" in names(proposed(world, "pay", "two", LARGE))


def test_large_call_is_put_off_before_anything_of_it_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed(world, "pay", "one", LARGE)
    monkeypatch.setattr("services.domain.execution.execution._decide", None)
    assert codes(proposed(world, "pay", "two", LARGE)) == [Refusal.QUOTA]


def test_ordinary_call_is_neither_charged_nor_put_off(world: World) -> None:
    for number in range(20):
        assert "HoldOpened" in names(proposed(world, "pay", f"small-{number}"))
    assert "HoldOpened" in names(proposed(world, "pay", "large", LARGE))
    assert "HoldOpened" in names(proposed(world, "pay", "after"))


def test_call_of_another_tenant_is_decided_meanwhile(clock: Clock) -> None:
    large = shares_of(clock)
    flooding, other = started(), started(tenant="other")
    for world in (flooding, other):
        sharing(world, large)
    proposed(flooding, "pay", "one", LARGE)
    assert codes(proposed(flooding, "pay", "two", LARGE)) == [Refusal.QUOTA]
    assert names(proposed(other, "pay", "one", LARGE)) != ["CommandRefused"]


def test_what_a_run_was_started_for_is_shown_with_each_call_and_counts_for_it(clock: Clock) -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot", request="x" * FREE_CHARS))
    sharing(world, shares_of(clock))
    assert "HoldOpened" in names(proposed(world, "pay", "one"))
    assert codes(proposed(world, "pay", "two")) == [Refusal.QUOTA]


def test_people_decide_whatever_their_agents_have_used_up(world: World) -> None:
    hold = the(proposed(world, "pay", "one", LARGE), "HoldOpened")
    proposed(world, "pay", "two", LARGE)
    edited = decided(
        world, hold, "edit", edited_arguments=LARGE.replace("5", "6"), view_digest=hold.view_digest
    )
    assert "ToolCallEdited" in names(edited) or "DecisionRecorded" in names(edited)
    again = decided(world, hold, "edit", edited_arguments=LARGE, view_digest=hold.view_digest)
    assert names(again) == ["DecisionRefused"]
    assert codes(again) == [Refusal.QUOTA]
    assert Refusal.QUOTA not in codes(decided(world, hold, "reject"))


def test_result_of_a_call_is_never_put_off(world: World) -> None:
    proposed(world, "pay", "one", LARGE)
    reported = world.ask(k.ReportResult(call_id="one", attempt_id="a", outcome="succeeded", output=LARGE))
    assert codes(reported) == [Refusal.NOT_RELEASED]


def test_long_result_is_charged_for_its_decision_and_for_its_fold(world: World, clock: Clock) -> None:
    clock.costly = False
    consumed(world, the(proposed(world, "read", "one"), "ToolCallReleased").digest, call_id="one")
    clock.costly, clock.cost_s = True, FREE_S + 0.8 * BURST_S
    assert names(reported(world, "succeeded", call_id="one", output=LARGE)) == ["ToolCallSucceeded"]

    clock.costly = False
    assert codes(proposed(world, "pay", "two", LARGE)) == [Refusal.QUOTA]
    assert "HoldOpened" in names(proposed(world, "pay", "small"))


def test_result_that_is_read_from_the_log_is_charged_to_nobody(world: World, clock: Clock) -> None:
    consumed(world, the(proposed(world, "read", "one"), "ToolCallReleased").digest, call_id="one")
    reported(world, "succeeded", call_id="one", output=LARGE)
    large = shares_of(clock)
    reader = sharing(World(), large)
    for event in world.events:
        reader.partition.apply(event)

    assert reader.state().words == world.state().words
    assert not large.agents.is_spent(world.tenant)


def test_calls_that_waited_in_a_pause_are_charged_when_they_are_judged(world: World, clock: Clock) -> None:
    clock.costly = False
    world.ask(k.PauseExecution(reason="stop"), BOT)
    proposed(world, "pay", "one", LARGE)
    clock.costly = True
    assert chars_of(world.state(), k.ResumeExecution()) > FREE_CHARS
    assert "HoldOpened" in names(world.ask(k.ResumeExecution(), BOT))
    assert codes(proposed(world, "pay", "two", LARGE)) == [Refusal.QUOTA]


@pytest.mark.parametrize("actor", [RITA, OLGA])
def test_resume_by_a_person_is_not_put_off_for_an_agents_calls(
    world: World, clock: Clock, actor: Actor
) -> None:
    world.ask(k.PauseExecution(reason="stop"), BOT)
    proposed(world, "pay", "one", LARGE)
    assert codes(world.ask(k.ResumeExecution(), BOT)) == [Refusal.QUOTA]
    assert "ExecutionResumed" in names(world.ask(k.ResumeExecution(), actor))
