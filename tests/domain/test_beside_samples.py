"""Decisions that judge several calls: trust releases none beside a sampled one of its class."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from schemas import commands as k
from schemas.adaptive import AdaptiveOutcome, draw_of, outcome_from_text
from schemas.canonical import call_digest, canonical
from schemas.events.calls import PolicyVerdictIssued
from schemas.message import Message
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.counting import ENOUGH, HARMLESS, answer, learning
from tests.domain.ruled import make
from tests.domain.steps import code, consumed, decided, started
from tests.domain.trusting import SEED, Known, facts
from tests.domain.world import BOT, OLGA, TENANT, World, names, published, rule, the

RATE = 0.5
BOB, CAROL = {"to": "bob"}, {"to": "carol", "memo": ""}
NUDGE = k.ExpireDue(subject_id="", deadline_at_ms=0, attempt=1)
RULES = [rule("asks", "send", "hold")]


def paused() -> World:
    """A run whose calls trust releases, but for half of them, until it goes on after its pause."""
    world, _ = learning()
    for arguments in (BOB, CAROL):
        answer(world, "approve", arguments, ENOUGH)
    world.definitions = published(world.definitions, RULES, adaptive={"sample_rate": RATE})
    world.ask(k.PauseExecution(), OLGA)
    return world


def ids(world: World, tool: str, arguments: dict[str, Any], *, sampled: bool) -> Iterator[str]:
    """Ids of calls of which the draw makes samples, or none."""
    version = next(one.version for (_, _, name), one in world.definitions.tools.items() if name == tool)
    digest = call_digest(TENANT, "bot", tool, version, canonical(arguments))
    for number in count():
        name = f"p{number:02}"
        if (draw_of(SEED, name, 1, digest) < RATE) == sampled:
            yield name


def park(world: World, arguments: dict[str, Any], first: str, *, sampled: bool) -> str:
    """Propose a call whose id comes after another's and decides whether it is a sample."""
    name = next(one for one in ids(world, "send", arguments, sampled=sampled) if one > first)
    world.ask(k.ProposeToolCall(call_id=name, tool="send", arguments=canonical(arguments)))
    return name


def outcomes(bodies: list[Message]) -> dict[str, AdaptiveOutcome]:
    return {
        body.call_id: outcome_from_text(body.adaptive)
        for body in bodies
        if isinstance(body, PolicyVerdictIssued) and body.adaptive is not None
    }


def results(bodies: list[Message]) -> dict[str, str]:
    return {call_id: outcome.result for call_id, outcome in outcomes(bodies).items()}


def test_parked_call_beside_a_sampled_one_is_asked_as_one_that_comes_later() -> None:
    world = paused()
    before = park(world, BOB, "", sampled=False)
    sampled = park(world, BOB, before, sampled=True)
    after = park(world, BOB, sampled, sampled=False)
    again = park(world, BOB, after, sampled=True)

    first = results(world.ask(k.ResumeExecution(), OLGA))
    assert first == {before: "released", sampled: "sampled"}
    place = next(
        event.offset
        for event in world.events
        if isinstance(event.body, PolicyVerdictIssued) and event.body.call_id == sampled
    )
    assert world.partition.due_of(world.key()) is not None
    rest = outcomes(world.ask(NUDGE))
    assert {call_id: outcome.result for call_id, outcome in rest.items()} == dict.fromkeys(
        (after, again), "asked"
    )
    assert rest[after].why == f"a sampled call like this one waits for people, at 0@{place} of the log"
    assert world.state().parked == ()


def test_parked_call_of_another_class_is_judged_beside_a_sampled_one() -> None:
    world = paused()
    sampled = park(world, BOB, "", sampled=True)
    other = park(world, CAROL, sampled, sampled=False)
    another = park(world, CAROL, other, sampled=True)

    assert results(world.ask(k.ResumeExecution(), OLGA)) == {
        sampled: "sampled",
        other: "released",
        another: "sampled",
    }


def test_parked_calls_that_are_all_sampled_take_one_part_for_the_first_and_one_for_the_others() -> None:
    world = paused()
    world.definitions = published(world.definitions, RULES, adaptive={"sample_rate": 1})
    for number in range(20):
        world.ask(k.ProposeToolCall(call_id=f"p{number:02}", tool="send", arguments=canonical(BOB)))

    assert results(world.ask(k.ResumeExecution(), OLGA)) == {"p00": "sampled"}
    assert set(results(world.ask(NUDGE)).values()) == {"asked"}
    assert world.state().parked == ()


REMEMBERED = [rule("asks", "send", "hold", remember={"four_eyes": False, "max_uses": 10})]
ALWAYS: dict[str, Any] = {"sample_rate": RATE, "floor": {"low": 0, "medium": 0, "high": 0}}


class Waiting:
    """Calls that wait for a use of a remembered decision; trust releases such calls, but for half of them."""

    def __init__(self) -> None:
        # The trust role has counted up to here what follows.
        trust = Known(facts())
        tools = [{"name": "send", "annotations": HARMLESS}]
        empty = Definitions(policies=PolicySet())
        self.world = started(definitions=published(empty, REMEMBERED, tools), trust=trust, seed=SEED)
        hold = the(self.propose("first"), "HoldOpened")
        approved = decided(self.world, hold, "approve", scope="rule", remember='{"uses":5}')
        make(self.world, the(approved, "RuleAsked"))
        self.world.definitions = published(self.world.definitions, REMEMBERED, adaptive=ALWAYS)
        self.sampled, self.plain = (ids(self.world, "send", {}, sampled=found) for found in (True, False))

    def propose(self, name: str, **more: Any) -> list[Message]:
        return self.world.ask(k.ProposeToolCall(call_id=name, tool="send", arguments="{}", **more), BOT)

    def wait(self, name: str) -> str:
        """Propose a call that waits for its use; it is asked for a moment later than the one before."""
        assert names(self.propose(name))[-1] == "ReservationAsked"
        self.world.later(0.001)
        return name

    def forget(self) -> None:
        """The decision is remembered no more: calls are judged without it."""
        rules = [rule("now", "send", "hold")]
        self.world.definitions = published(self.world.definitions, rules, adaptive=ALWAYS)


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def test_wait_that_ends_beside_that_of_a_sampled_call_ends_in_a_decision_of_its_own(waiting: Waiting) -> None:
    sampled, plain = waiting.wait(next(waiting.sampled)), waiting.wait(next(waiting.plain))
    waiting.world.later(20)

    assert results(waiting.world.ask(NUDGE)) == {sampled: "sampled"}
    assert results(waiting.world.ask(NUDGE)) == {plain: "asked"}


def test_proposal_in_the_moment_in_which_a_call_is_sampled_is_not_released(waiting: Waiting) -> None:
    sampled, plain = waiting.wait(next(waiting.sampled)), next(waiting.plain)
    waiting.forget()
    waiting.world.later(20)

    bodies = waiting.propose(plain)
    assert (results(bodies), code(bodies)) == ({sampled: "sampled"}, "unavailable")
    assert results(waiting.propose(plain)) == {plain: "asked"}


def test_release_is_not_consumed_in_the_moment_in_which_a_call_is_sampled_if_definitions_changed(
    waiting: Waiting,
) -> None:
    sampled = waiting.wait(next(waiting.sampled))
    waiting.forget()
    plain = next(waiting.plain)
    released = the(waiting.propose(plain), "ToolCallReleased")
    waiting.forget()
    waiting.world.later(20)

    bodies = consumed(waiting.world, released.digest, call_id=plain)
    assert (results(bodies), code(bodies)) == ({sampled: "sampled"}, "unavailable")
    assert "GrantConsumed" not in names(bodies)
    again = consumed(waiting.world, released.digest, call_id=plain)
    assert names(again) == ["PolicyVerdictIssued", "HoldOpened", "CommandRefused"]


def test_release_is_consumed_in_the_moment_in_which_a_call_is_sampled(waiting: Waiting) -> None:
    sampled = waiting.wait(next(waiting.sampled))
    waiting.forget()
    plain = next(waiting.plain)
    released = the(waiting.propose(plain), "ToolCallReleased")
    waiting.world.later(20)

    bodies = consumed(waiting.world, released.digest, call_id=plain)
    assert results(bodies) == {sampled: "sampled"}
    assert "GrantConsumed" in names(bodies)
