"""A word on an own request, or of somebody excluded, counts no longer once that is known."""

from collections.abc import Callable
from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from tests.domain.steps import code, consumed, decided, held, reported
from tests.domain.test_authority import asking
from tests.domain.world import PROJECT, TENANT, World, names, published, rule, the, with_people


def person(subject: str, *roles: str) -> Actor:
    return Actor(subject=subject, tenant=TENANT, project=PROJECT, roles=roles)


THEO, THEO_AGAIN = person("theo", "treasurer"), person("t9", "treasurer")
TINA, LEA, BOB = person("tina", "treasurer"), person("lea", "treasurer"), person("bob", "clerk")
THEOS: dict[str, Any] = {"principal": "theo-t", "subjects": ["theo"], "roles": ["treasurer"]}
TWO = {**THEOS, "subjects": ["theo", "t9"]}
MALS = {"principal": "mallory", "subjects": ["mallory"], "roles": []}
PAY = {"roles": ["treasurer"], "quorum": 2, "exclude_requester": True, "excluded": ["mallory"]}


def world_of(**hold: Any) -> World:
    world = asking(**{**PAY, **hold})
    world.definitions = with_people(world.definitions, THEOS)
    return world


def edited_by(world: World, by: Actor) -> Any:
    """A hold on a call that somebody has edited."""
    said = decided(world, held(world), "edit", by, edited_arguments='{"amount":7}')
    return the(said, "HoldOpened")


def an_editors() -> tuple[World, Any, Actor]:
    world = world_of()
    return world, edited_by(world, THEO_AGAIN), THEO


def a_delegators_of_an_editor() -> tuple[World, Any, Actor]:
    world = world_of()
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="bob"), THEO_AGAIN)
    said = decided(world, hold, "edit", BOB, edited_arguments='{"amount":7}')
    return world, the(said, "HoldOpened"), THEO


def whom_the_agent_acts_for() -> tuple[World, Any, Actor]:
    world = world_of()
    return world, held(world), THEO


def who_started_the_run() -> tuple[World, Any, Actor]:
    world = World(definitions=world_of().definitions)
    world.ask(k.StartExecution(agent="bot"), person("t9", "operator"))
    return world, held(world), THEO


def the_runs_user() -> tuple[World, Any, Actor]:
    world = World(definitions=world_of().definitions)
    world.ask(k.StartExecution(agent="bot", user="t9"))
    return world, held(world), THEO


def by_delegation() -> tuple[World, Any, Actor]:
    world = world_of()
    hold = held(world)
    assert names(world.ask(k.DelegateHold(hold_id=hold.hold_id, to="bob"), THEO)) == ["HoldDelegated"]
    return world, hold, BOB


def by_an_escalation() -> tuple[World, Any, Actor]:
    world = world_of(roles=["cfo"], escalate={"after_seconds": 60, "roles": ["treasurer"]})
    hold = held(world)
    world.later(60)
    return world, hold, THEO


def excluded() -> tuple[World, Any, Actor]:
    world = world_of(exclude_requester=False)
    world.definitions = with_people(world.definitions, MALS)
    return world, held(world), THEO_AGAIN


def excluded_by_delegation() -> tuple[World, Any, Actor]:
    world, hold, _ = excluded()
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="bob"), THEO_AGAIN)
    return world, hold, BOB


AGENTS = {**THEOS, "agents": ["bot"]}
EXCLUDED = {**MALS, "subjects": ["mallory", "t9"], "roles": ["treasurer"]}
EagerCoroutine = Callable[[], tuple[World, Any, Actor]]
CASES: dict[str, tuple[EagerCoroutine, dict[str, Any]]] = {
    "the editor": (an_editors, TWO),
    "who handed it to the editor": (a_delegators_of_an_editor, TWO),
    "for whom the agent acts": (whom_the_agent_acts_for, AGENTS),
    "who started the run": (who_started_the_run, TWO),
    "the run's user": (the_runs_user, TWO),
    "by delegation": (by_delegation, AGENTS),
    "after an escalation": (by_an_escalation, AGENTS),
    "excluded": (excluded, EXCLUDED),
    "excluded, by delegation": (excluded_by_delegation, EXCLUDED),
}
cases = pytest.mark.parametrize(("begun", "known"), CASES.values(), ids=CASES)


@cases
def test_quorum_counts_no_word_on_an_own_request_once_that_is_known(
    begun: EagerCoroutine, known: dict[str, Any]
) -> None:
    world, hold, by = begun()
    assert names(decided(world, hold, "approve", by))[-1] == "DecisionRecorded"
    world.definitions = with_people(world.definitions, known)

    assert code(decided(world, hold, "approve", by)) in ("own_request", "not_authorised", "forbidden_role")
    assert names(decided(world, hold, "approve", TINA)) == ["DecisionRecorded"]
    assert names(decided(world, hold, "approve", LEA)) == ["DecisionRecorded", "ToolCallReleased"]
    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]


@cases
def test_consume_what_was_approved_as_an_own_request_is_held_again(
    begun: EagerCoroutine, known: dict[str, Any]
) -> None:
    world, hold, by = begun()
    decided(world, hold, "approve", by)
    assert "ToolCallReleased" in names(decided(world, hold, "approve", TINA))
    world.definitions = with_people(world.definitions, known)

    said = consumed(world, hold.digest)

    assert code(said) == "not_released"
    assert the(said, "HoldOpened").cause == "definition_changed"


@cases
def test_consume_after_more_than_were_asked_for_have_approved_needs_no_own_word(
    begun: EagerCoroutine, known: dict[str, Any]
) -> None:
    """The own word counted for nothing: what is left is of as many as the rule asks for."""
    world, hold, by = begun()
    decided(world, hold, "approve", by)
    world.definitions = with_people(world.definitions, known)
    for other in (TINA, LEA):
        decided(world, hold, "approve", other)

    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]


def test_edit_by_a_delegate_stays_the_givers_whoever_bears_the_delegates_name_since() -> None:
    world, hold, _ = a_delegators_of_an_editor()
    bobs = {"principal": "bob", "subjects": ["somebody"], "roles": []}
    world.definitions = with_people(world.definitions, TWO, bobs)

    assert code(decided(world, hold, "approve", THEO)) == "own_request"


def test_consume_of_what_the_policy_allows_by_now_records_the_verdict_that_it_stands_on() -> None:
    """Else the log would show a run that nobody who may has approved."""
    world, hold, by = whom_the_agent_acts_for()
    for other in (by, TINA):
        decided(world, hold, "approve", other)
    world.definitions = with_people(world.definitions, AGENTS)
    world.definitions = published(world.definitions, [rule("all", "*", "allow")])

    said = consumed(world, hold.digest)

    assert names(said) == ["PolicyVerdictIssued", "GrantConsumed"]
    assert the(said, "PolicyVerdictIssued").effect == "allow"


def test_word_counts_again_once_the_agent_acts_for_another() -> None:
    world = world_of()
    hold = held(world)
    decided(world, hold, "approve", THEO)
    world.definitions = with_people(world.definitions, AGENTS, THEOS)

    assert names(decided(world, hold, "approve", TINA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_word_does_not_count_again_once_the_editors_account_is_taken_away() -> None:
    world, hold, by = an_editors()
    decided(world, hold, "approve", by)
    world.definitions = with_people(world.definitions, TWO, THEOS)

    assert names(decided(world, hold, "approve", TINA)) == ["DecisionRecorded"]


def test_quorum_of_a_rule_that_lets_requesters_decide_counts_their_words() -> None:
    world = world_of(exclude_requester=False)
    hold = held(world)
    decided(world, hold, "approve", THEO)
    world.definitions = with_people(world.definitions, AGENTS)

    assert names(decided(world, hold, "approve", TINA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_run_again_after_an_unknown_outcome_counts_no_word_on_an_own_request() -> None:
    world, hold, _ = whom_the_agent_acts_for()
    for by in (TINA, LEA):
        decided(world, hold, "approve", by)
    consumed(world, hold.digest)
    asks = the(reported(world, "unknown"), "HoldOpened")
    decided(world, asks, "approve", THEO)
    world.definitions = with_people(world.definitions, AGENTS)

    assert names(decided(world, asks, "approve", TINA)) == ["DecisionRecorded"]
    assert names(decided(world, asks, "approve", LEA)) == ["DecisionRecorded", "ToolCallReleased"]
