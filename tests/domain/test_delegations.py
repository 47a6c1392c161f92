"""A word by delegation stands on what those may now who handed the hold on."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.authority import Asked, Delegation, refusal_to_decide
from schemas.message import Message
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.state import Hold
from tests.actions.handling import HANDLING, said
from tests.domain.steps import code, consumed, decided, held
from tests.domain.test_authority import MIA, MIAS, RITAS, asking
from tests.domain.world import PROJECT, RITA, TENANT, World, names, the, with_people

ZOE = Actor(subject="zoe", tenant=TENANT, project=PROJECT, roles=())
AMY = Actor(subject="amy", tenant=TENANT, project=PROJECT, roles=())

GONE: dict[str, dict[str, Any]] = {
    "disabled": {**MIAS, "disabled": True},
    "role lost": {**MIAS, "roles": []},
    "account taken": {**MIAS, "subjects": ["mia@old"]},
}
gone = pytest.mark.parametrize("change", GONE.values(), ids=GONE)


def handed_on(quorum: int = 1, *by_way_of: Actor) -> tuple[World, Hold]:
    """A hold that asks treasurers, and that mia, who is one, handed to others and these to zoe."""
    world = asking(roles=["treasurer"], quorum=quorum)
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    by = MIA
    for to in (*by_way_of, ZOE):
        assert names(hand_on(world, hold, by, to.subject)) == ["HoldDelegated"]
        by = to
    return world, hold


def hand_on(world: World, hold: Any, by: Actor, to: str) -> list[Message]:
    return world.ask(k.DelegateHold(hold_id=hold.hold_id, to=to), by)


@gone
@pytest.mark.parametrize("by_way_of", [(), (AMY,)], ids=["directly", "by another"])
@pytest.mark.parametrize("decision", ["approve", "reject", "edit", "respond"])
def test_decide_for_somebody_who_may_decide_no_more_is_refused(
    change: dict[str, Any], by_way_of: tuple[Actor, ...], decision: str
) -> None:
    world, hold = handed_on(1, *by_way_of)
    world.definitions = with_people(world.definitions, change)
    content = {"edit": {"edited_arguments": '{"amount":1}'}, "respond": {"value": "no"}}.get(decision, {})

    assert code(decided(world, hold, decision, ZOE, **content)) == "forbidden_role"
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]


@gone
@pytest.mark.parametrize("verb", HANDLING)
def test_act_on_a_hold_for_somebody_who_may_decide_no_more_is_refused(
    change: dict[str, Any], verb: str
) -> None:
    world, hold = handed_on()
    world.definitions = with_people(world.definitions, change)

    assert code(world.ask(said(verb, hold.hold_id), ZOE)) == "forbidden_role"


@gone
def test_consume_what_was_approved_for_somebody_who_may_decide_no_more_is_held_again(
    change: dict[str, Any],
) -> None:
    world, hold = handed_on()
    assert "ToolCallReleased" in names(decided(world, hold, "approve", ZOE))
    world.definitions = with_people(world.definitions, change)

    said = consumed(world, hold.digest)

    assert code(said) == "not_released"
    assert the(said, "HoldOpened").cause == "definition_changed"


@gone
def test_quorum_counts_no_word_for_somebody_who_may_decide_no_more(change: dict[str, Any]) -> None:
    world, hold = handed_on(2)
    assert names(decided(world, hold, "approve", ZOE)) == ["DecisionRecorded"]
    world.definitions = with_people(world.definitions, change)

    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded"]


def test_decide_after_one_through_whose_hands_the_hold_came_was_disabled_is_refused() -> None:
    world, hold = handed_on(1, AMY)
    amys = {"principal": "amy-a", "subjects": ["amy"], "disabled": True}
    world.definitions = with_people(world.definitions, amys)

    assert code(decided(world, hold, "approve", ZOE)) == "forbidden_role"


def test_decide_for_an_account_that_is_another_persons_now_is_refused() -> None:
    world, hold = handed_on()
    taken = {"principal": "tess-t", "subjects": ["mia"], "roles": ["treasurer"]}
    world.definitions = with_people(world.definitions, GONE["account taken"], taken)

    assert code(decided(world, hold, "approve", ZOE)) == "forbidden_role"


def test_decide_for_somebody_for_whom_the_agent_acts_by_now_is_refused() -> None:
    world = asking(roles=["treasurer"], exclude_requester=True)
    world.definitions = with_people(world.definitions, MIAS)
    hold = held(world)
    hand_on(world, hold, MIA, "zoe")
    world.definitions = with_people(world.definitions, {**MIAS, "agents": [world.state().agent]})

    assert code(decided(world, hold, "approve", ZOE)) == "forbidden_role"


def test_decide_for_somebody_who_is_not_published_stands_on_the_roles_then() -> None:
    world = asking(roles=["treasurer"])
    hold = held(world)
    hand_on(world, hold, MIA.model_copy(update={"roles": ("treasurer",)}), "zoe")

    assert "ToolCallReleased" in names(decided(world, hold, "approve", ZOE))
    assert "GrantConsumed" in names(consumed(world, hold.digest))


def test_decide_for_somebody_who_was_published_since_without_the_role_is_refused() -> None:
    world = asking(roles=["treasurer"])
    hold = held(world)
    hand_on(world, hold, MIA.model_copy(update={"roles": ("treasurer",)}), "zoe")
    world.definitions = with_people(world.definitions, {**MIAS, "roles": ["reviewer"]})

    assert code(decided(world, hold, "approve", ZOE)) == "forbidden_role"


def test_decide_for_somebody_whose_other_role_is_asked_by_now_only_is_refused() -> None:
    world, hold = handed_on()
    amys = {"principal": "amy-a", "subjects": ["amy"], "roles": []}
    world.definitions = with_people(world.definitions, amys)
    hand_on(world, hold, ZOE, "amy")
    hand_on(world, hold, AMY, "bob")
    world.definitions = with_people(
        world.definitions, {**amys, "roles": ["treasurer"]}, {**MIAS, "disabled": True}
    )
    bob = ZOE.model_copy(update={"subject": "bob"})

    assert code(decided(world, hold, "approve", bob)) == "forbidden_role"


def test_decide_by_a_delegate_with_a_role_of_their_own_needs_nobody_else() -> None:
    world, hold = handed_on()
    world.definitions = with_people(world.definitions, {**MIAS, "disabled": True})
    zoes = {"principal": "zoe-z", "subjects": ["zoe"], "roles": ["treasurer"]}
    world.definitions = with_people(world.definitions, zoes)

    assert "ToolCallReleased" in names(decided(world, hold, "approve", ZOE))


def test_quorum_of_who_handed_a_hold_on_that_they_could_decide_themselves_and_their_delegate_is_one() -> None:
    world = asking(quorum=2, roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS, RITAS)
    hold = held(world)
    hand_on(world, hold, MIA, "rita-r")
    hand_on(world, hold, RITA, "zoe")
    assert names(decided(world, hold, "approve", RITA)) == ["DecisionRecorded"]

    assert code(decided(world, hold, "approve", ZOE)) == "already_voted"


@pytest.mark.parametrize("to", ["", " ", "zoe ", "z\u200boe", "\t", "placet:timer"])
def test_hand_on_to_what_no_token_can_have_for_a_subject_is_refused(to: str) -> None:
    world = asking(roles=["treasurer"])
    world.definitions = with_people(world.definitions, MIAS)
    assert code(hand_on(world, held(world), MIA, to)) == "invalid"


@pytest.mark.parametrize("mias", [None, MIAS], ids=["not published", "published"])
def test_decide_by_a_delegation_of_an_earlier_version_stands_where_nobody_can_tell(
    mias: dict[str, Any] | None,
) -> None:
    # The first version of HoldDelegated had no roles.
    asked = Asked(("treasurer",), (), delegations=(Delegation("mia", "zoe"),))
    people = with_people(Definitions(policies=PolicySet()), *([mias] if mias else [])).people.of(
        TENANT, PROJECT
    )

    refused = refusal_to_decide(asked, frozenset, ZOE, people)

    assert (refused is None) == (mias is None)
