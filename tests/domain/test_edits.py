"""Edits under rules that ask others: whom the edited call asks, its second run, and a tool that has changed."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.steps import code, consumed, decided, held, reported, started
from tests.domain.world import (
    CLARA,
    PROJECT,
    RITA,
    TENANT,
    TOOLS,
    World,
    names,
    published,
    rule,
    the,
    with_people,
)

CLERK = Actor(subject="cleo", tenant=TENANT, project=PROJECT, roles=("clerk",))
SMALL = rule("small", "pay", "hold", roles=["clerk"])
ANY_ABOVE = {**rule("big", "pay", "hold"), "when": "args.amount > 100.0"}


def clerks(*rules: dict[str, Any]) -> World:
    """A running execution whose small payments a clerk decides, who is no reviewer."""
    return started(definitions=published(Definitions(policies=PolicySet()), [*rules, SMALL], TOOLS))


def test_case_09_edit_into_a_rule_that_names_nobody_still_asks_a_reviewer() -> None:
    world = clerks(ANY_ABOVE)
    hold = held(world)

    said = decided(world, hold, "edit", CLERK, edited_arguments='{"amount":5000}')

    opened = the(said, "HoldOpened")
    assert "ToolCallReleased" not in names(said)
    assert code(decided(world, opened, "approve", CLERK)) == "already_voted"
    assert names(decided(world, opened, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]
    world.definitions = published(world.definitions, [ANY_ABOVE, SMALL, rule("more", "other", "allow")])
    assert names(consumed(world, opened.digest)) == ["GrantConsumed"], (
        "an unrelated change takes nothing back"
    )


def test_edit_into_a_rule_that_names_nobody_by_one_who_is_of_both_is_released() -> None:
    world = clerks(ANY_ABOVE)
    hold = held(world)
    both = CLERK.model_copy(update={"roles": ("clerk", "reviewer")})

    assert (
        names(decided(world, hold, "edit", both, edited_arguments='{"amount":5000}'))[-1]
        == "ToolCallReleased"
    )


def test_case_01_consume_after_a_rule_that_names_nobody_came_is_held_for_a_reviewer() -> None:
    world = clerks()
    hold = held(world)
    decided(world, hold, "approve", CLERK)
    world.definitions = published(world.definitions, [rule("big", "pay", "hold"), SMALL])

    opened = the(consumed(world, hold.digest), "HoldOpened")

    assert code(decided(world, opened, "approve", CLERK)) == "forbidden_role"


def test_edit_by_a_delegate_where_any_reviewer_is_asked_is_the_givers_word() -> None:
    world = clerks(rule("any", "pay", "hold"))
    hold = held(world)
    world.ask(k.DelegateHold(hold_id=hold.hold_id, to="cleo"), RITA)

    said = decided(world, hold, "edit", CLERK, edited_arguments='{"amount":7}')

    assert names(said)[-1] == "ToolCallReleased"


BIG_EDITS = {**rule("big-edit", "again", "hold", roles=["cfo"]), "when": "edited && args.amount > 1000.0"}
PAYS = rule("pays", "again", "hold", roles=["reviewer", "cfo"])
LARGE = '{"amount":5000}'


def edited_and_run(*rules: dict[str, Any]) -> tuple[World, str]:
    """A payment that the cfo edited above the limit, released by that word and run: its new digest."""
    world = started(definitions=published(Definitions(policies=PolicySet()), [*rules], TOOLS))
    hold = the(
        world.ask(k.ProposeToolCall(call_id="c", tool="again", arguments='{"amount":10}')), "HoldOpened"
    )
    digest = the(decided(world, hold, "edit", CLARA, edited_arguments=LARGE), "ToolCallReleased").digest
    return world, str(digest)


def test_case_09_second_run_of_an_edited_call_asks_whom_the_edit_asked() -> None:
    world, digest = edited_and_run(BIG_EDITS, PAYS)
    consumed(world, digest)

    again = the(reported(world, "unknown"), "HoldOpened")

    assert (again.cause, again.roles) == ("outcome_unknown", ("cfo",))
    assert code(decided(world, again, "approve", RITA)) == "forbidden_role"
    assert names(decided(world, again, "approve", CLARA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_second_run_of_an_edited_call_excludes_whom_the_edit_excluded() -> None:
    barring = {**BIG_EDITS, "hold": {"roles": ["reviewer", "cfo"], "excluded": ["rita"]}}
    world, digest = edited_and_run(barring, PAYS)
    consumed(world, digest)

    again = the(reported(world, "unknown"), "HoldOpened")

    assert again.excluded == ("rita",)
    assert code(decided(world, again, "approve", RITA)) == "not_authorised"


def test_consume_of_an_edited_call_after_an_unrelated_change_goes_through() -> None:
    world, digest = edited_and_run(BIG_EDITS, PAYS)
    world.definitions = published(world.definitions, [BIG_EDITS, PAYS, rule("more", "other", "allow")])

    assert names(consumed(world, digest)) == ["GrantConsumed"]


def test_consume_of_an_edited_call_whose_editor_lost_the_role_that_the_edit_asked_is_held_again() -> None:
    both = {"principal": "clara", "subjects": ["clara"], "roles": ["cfo", "reviewer"]}
    world = started(definitions=published(Definitions(policies=PolicySet()), [BIG_EDITS, PAYS], TOOLS))
    world.definitions = with_people(world.definitions, both)
    hold = the(
        world.ask(k.ProposeToolCall(call_id="c", tool="again", arguments='{"amount":10}')), "HoldOpened"
    )
    digest = the(decided(world, hold, "edit", CLARA, edited_arguments=LARGE), "ToolCallReleased").digest
    world.definitions = with_people(world.definitions, {**both, "roles": ["reviewer"]})

    assert the(consumed(world, digest), "HoldOpened").roles == ("cfo",)


@pytest.mark.parametrize("arguments", ['{"amount":7}', '{"amount":5}'], ids=["other arguments", "the same"])
def test_case_01_edit_of_a_call_whose_tool_has_changed_is_held_for_a_look_at_the_new_one(
    arguments: str,
) -> None:
    world = clerks(rule("any", "pay", "hold"))
    hold = held(world)
    world.definitions = published(world.definitions, tools=[{"name": "pay", "description": "REAL money"}])

    said = decided(world, hold, "edit", RITA, edited_arguments=arguments)

    opened = the(said, "HoldOpened")
    assert "ToolCallReleased" not in names(said)
    assert (opened.cause, opened.revision, "was shown the old one" in opened.question) == (
        "definition_changed",
        2,
        True,
    )
    assert names(decided(world, opened, "approve", RITA)) == ["DecisionRecorded", "ToolCallReleased"]
