"""A hold that several rules ask for: each rule's own people must be among those who approve."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from tests.domain.steps import code, consumed, decided, started
from tests.domain.world import BOT, PROJECT, RITA, TENANT, World, published, rule, the

LEAD = Actor(subject="lena", tenant=TENANT, project=PROJECT, roles=("support-lead",))
TREASURER = Actor(subject="tom", tenant=TENANT, project=PROJECT, roles=("treasurer",))
SECOND_TREASURER = Actor(subject="tina", tenant=TENANT, project=PROJECT, roles=("treasurer",))
BOTH = Actor(subject="bea", tenant=TENANT, project=PROJECT, roles=("treasurer", "support-lead"))
DINA = Actor(subject="dina", tenant=TENANT, project=PROJECT, roles=())

CREDITS = [
    {**rule("small", "again", "allow"), "when": "args.amount <= 20.0 && !edited"},
    {**rule("credit", "again", "hold", roles=["support-lead"]), "when": "args.amount > 20.0"},
    {**rule("large", "again", "hold", roles=["treasurer"], quorum=2), "when": "args.amount > 100.0"},
]
SOME = '{"amount":"twenty"}'


def waiting(rules: list[dict[str, Any]] = CREDITS) -> tuple[World, Any]:
    """A world with a call whose conditions all failed, and its hold."""
    world = started()
    world.definitions = published(world.definitions, rules)
    events = world.ask(k.ProposeToolCall(call_id="c", tool="again", arguments=SOME))
    return world, the(events, "HoldOpened")


def types(events: list[Any]) -> list[str]:
    """The events' types."""
    return [type(event).__name__ for event in events]


def test_case_38_plain_reviewer_cannot_approve_what_failed_in_every_rule() -> None:
    world, hold = waiting()

    assert code(decided(world, hold, "approve", RITA)) == "forbidden_role"


def test_case_38_every_rule_that_failed_gets_its_own_people() -> None:
    world, hold = waiting()

    assert types(decided(world, hold, "approve", TREASURER)) == ["DecisionRecorded"]
    assert types(decided(world, hold, "approve", SECOND_TREASURER)) == ["DecisionRecorded"]
    assert "ToolCallReleased" in types(decided(world, hold, "approve", LEAD))


def test_case_38_two_people_of_one_rule_are_not_the_other_rules() -> None:
    world, hold = waiting()

    decided(world, hold, "approve", LEAD)
    decided(world, hold, "approve", TREASURER)

    assert world.state().calls["c"].status == "held"


def test_requirements_one_person_may_be_of_both_rules() -> None:
    world, hold = waiting()

    decided(world, hold, "approve", BOTH)

    assert "ToolCallReleased" in types(decided(world, hold, "approve", TREASURER))


def test_requirements_one_rejection_of_anybody_asked_ends_it() -> None:
    world, hold = waiting()

    assert "ToolCallDenied" in types(decided(world, hold, "reject", LEAD))


@pytest.mark.parametrize(("by", "released"), [(SECOND_TREASURER, True), (LEAD, False)])
def test_requirements_delegate_speaks_for_the_rule_of_who_handed_it_on(by: Actor, released: bool) -> None:
    world, hold = waiting()
    decided(world, hold, "approve", BOTH)

    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="dina"), by)

    assert ("ToolCallReleased" in types(decided(world, hold, "approve", DINA))) is released


def test_requirements_stay_with_an_edit() -> None:
    world, hold = waiting()

    events = decided(world, hold, "edit", LEAD, edited_arguments='{"amount":50}')

    opened = the(events, "HoldOpened")
    assert "ToolCallReleased" not in types(events)
    assert opened.requirements == hold.requirements
    # The editor's own word was the first; the treasurers' are still wanted.
    decided(world, opened, "approve", TREASURER)
    assert "ToolCallReleased" in types(decided(world, opened, "approve", SECOND_TREASURER))


def test_requirements_that_come_between_release_and_consumption_take_it_back() -> None:
    world = started()
    plain = [rule("plain", "again", "hold", roles=["support-lead"])]
    world.definitions = published(world.definitions, plain)
    hold = the(world.ask(k.ProposeToolCall(call_id="c", tool="again", arguments=SOME), BOT), "HoldOpened")
    decided(world, hold, "approve", LEAD)
    world.definitions = published(world.definitions, CREDITS)

    again = the(consumed(world, hold.digest), "HoldOpened")

    assert again.cause == "definition_changed"
    assert again.requirements is not None


def test_requirements_that_were_met_still_count_at_consumption() -> None:
    world, hold = waiting()
    for person in (BOTH, TREASURER):
        decided(world, hold, "approve", person)
    world.definitions = published(world.definitions, CREDITS)

    assert "GrantConsumed" in types(consumed(world, hold.digest))


def test_requirements_escalation_widens_its_own_rule_only() -> None:
    rules = [
        {**rule("credit", "again", "hold", roles=["support-lead"]), "when": "args.amount > 20.0"},
        {
            **rule(
                "large", "again", "hold", roles=["treasurer"], escalate={"after_seconds": 5, "roles": ["cfo"]}
            ),
            "when": "args.amount > 100.0",
        },
    ]
    world, hold = waiting(rules)
    world.ask(k.EscalateHold(hold_id=hold.hold_id), TREASURER)

    one, other = world.state().holds[hold.hold_id].requirements

    assert (one.roles, other.roles) == (("support-lead",), ("treasurer", "cfo"))
