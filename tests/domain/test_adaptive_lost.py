"""Trust that is lost: contrary words, samples that wait or are withdrawn, and releases that no longer stand."""

import json
from typing import Any

import pytest

from schemas import commands as k
from schemas.events.calls import GrantRevoked
from tests.domain.steps import consumed, decided, held, proposed
from tests.domain.trusting import ALWAYS, Known, facts, outcome, world_of
from tests.domain.world import (
    OLGA,
    RULES,
    names,
    published,
    the,
)

DECIDED_OTHERWISE = "such a call was decided otherwise, or waits for people as a sample, at 0@"


def test_contrary_decision_stops_releases_of_its_class_before_trust_has_counted_it() -> None:
    trust = Known(facts(), through=0)
    world = world_of(trust, {**ALWAYS, "sample_rate": 1})
    decided(world, held(world, "pay", "first"), "reject")
    rejected_at = len(world.events)
    world.definitions = published(world.definitions, RULES, adaptive=ALWAYS)

    second = proposed(world, "pay", "second")
    assert outcome(second).why.startswith(DECIDED_OTHERWISE)
    cited = json.loads(the(second, "PolicyVerdictIssued").trust)
    assert cited["lower_bound"] == 0
    assert world.events[int(cited["contrary_at"].removeprefix("0@"))].type == "DecisionRecorded"
    assert outcome(proposed(world, "pay", "third", '{"amount":500}')).result == "released"
    trust.through = rejected_at
    assert outcome(proposed(world, "pay", "fourth")).result == "released"


def test_class_is_asked_while_a_sample_waits_and_earned_anew_if_it_is_withdrawn() -> None:
    trust = Known(facts())
    world = world_of(trust, {**ALWAYS, "sample_rate": 1})
    hold = held(world, "pay", "sampled")
    world.definitions = published(world.definitions, RULES, adaptive=ALWAYS)

    waits = outcome(proposed(world, "pay", "again")).why
    assert waits == "a sampled call like this one waits for people, at 0@2 of the log"
    decided(world, hold, "approve")
    assert outcome(proposed(world, "pay", "after")).result == "released"

    world.definitions = published(world.definitions, RULES, adaptive={**ALWAYS, "sample_rate": 1})
    held(world, "pay", "withdrawn")
    world.ask(k.CancelExecution(reason="no"), OLGA)
    trust.through = 0
    world.definitions = published(world.definitions, RULES, adaptive=ALWAYS)
    world.ask(k.StartExecution(agent="bot"), execution_id="y")
    proposal = k.ProposeToolCall(call_id="c", tool="pay", arguments='{"amount":5}')
    assert outcome(world.ask(proposal, execution_id="y")).why.startswith(DECIDED_OTHERWISE)


@pytest.mark.parametrize(("rate", "result"), [(1, "asked"), (0, "released")])
def test_edit_is_contrary_only_of_a_call_that_trust_would_have_released(rate: int, result: str) -> None:
    world = world_of(Known(facts(60 * rate), through=0), {**ALWAYS, "sample_rate": rate})
    decided(world, held(world, "pay", "first"), "edit", edited_arguments='{"amount":6}')
    world.trust = Known(facts(), through=0)
    world.definitions = published(world.definitions, RULES, adaptive=ALWAYS)

    assert outcome(proposed(world, "pay", "second")).result == result


def test_revoked_release_is_contrary_and_one_that_expired_is_not() -> None:
    world = world_of(Known(facts(), through=0), ALWAYS)
    proposed(world, "pay", "first")
    world.ask(k.RevokeGrant(call_id="first", reason="wrong"), OLGA)

    assert outcome(proposed(world, "pay", "second")).why.startswith(DECIDED_OTHERWISE)

    other = world_of(Known(facts(), through=0), ALWAYS)
    proposed(other, "pay", "first")
    other.later(16 * 60)
    proposed(other, "pay", "second")
    assert [one.body.reason for one in other.events if isinstance(one.body, GrantRevoked)] == ["expired"]
    assert outcome(proposed(other, "pay", "third")).result == "released"


def test_edit_by_a_person_is_judged_without_trust() -> None:
    world = world_of(Known(facts()), {**ALWAYS, "sample_rate": 1})

    bodies = decided(world, held(world, "pay"), "edit", edited_arguments='{"amount":6}')

    assert the(bodies, "PolicyVerdictIssued").adaptive is None


@pytest.mark.parametrize(
    ("adaptive", "stands"), [(ALWAYS, True), (None, False), ({**ALWAYS, "sample_rate": 1}, False)]
)
def test_release_by_trust_stands_after_a_change_only_while_trust_would_release_it_again(
    adaptive: dict[str, Any] | None, stands: bool
) -> None:
    world = world_of(Known(facts()), ALWAYS)
    digest = the(proposed(world, "pay"), "ToolCallReleased").digest
    blocks: dict[str, Any] = {"adaptive": adaptive} if adaptive else {}
    world.definitions = published(world.definitions, RULES, **blocks)

    assert names(consumed(world, digest))[-1] == ("GrantConsumed" if stands else "CommandRefused")
    assert world.state().calls["c"].status == ("consumed" if stands else "held")
