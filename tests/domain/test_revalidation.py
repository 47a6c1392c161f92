"""Between release and consumption: what the definitions of that moment make of a release."""

from typing import Any

import pytest

from schemas import commands as k
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.steps import ask_two, code, consumed, decided, held, proposed, released, reported, started
from tests.domain.world import CLARA, OLGA, RULES, TOOLS, World, names, published, rule, the

BANNED = [rule("none", "*", "deny")]


def test_consume_after_an_unrelated_change_goes_through() -> None:
    world = started()
    digest = released(world)
    world.definitions = published(world.definitions, RULES)

    assert names(consumed(world, digest)) == ["GrantConsumed"]


def test_consume_after_the_policy_became_deny_is_denied() -> None:
    world = started()
    digest = released(world)
    world.definitions = published(world.definitions, BANNED)

    said = consumed(world, digest)

    assert names(said) == ["PolicyVerdictIssued", "ToolCallDenied", "CommandRefused"]
    assert code(said) == "not_released"
    assert code(consumed(world, digest)) == "not_released"


def test_consume_after_more_people_are_asked_for_is_held_again() -> None:
    world = started()
    digest = released(world)
    ask_two(world)

    said = consumed(world, digest)

    hold = the(said, "HoldOpened")
    assert (hold.cause, hold.quorum, hold.digest) == ("definition_changed", 2, digest)
    assert names(decided(world, hold, "approve")) == ["DecisionRecorded"]
    assert code(consumed(world, digest)) == "not_released"


def asking(*roles: str, escalate: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Rules by which a payment asks for roles, and for others when it has escalated."""
    more = {"escalate": {"after_seconds": 300, "roles": list(escalate)}} if escalate else {}
    return [rule("pays", "pay", "hold", roles=list(roles), timeout_seconds=600, **more)]


def approved_after_escalation(rules: list[dict[str, Any]]) -> tuple[World, str]:
    """A payment that was escalated to the cfo, who approved it: its digest."""
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    hold = held(world)
    world.later(300)
    assert names(decided(world, hold, "approve", CLARA)) == [
        "HoldEscalated", "DecisionRecorded", "ToolCallReleased",
    ]  # fmt: skip
    return world, hold.digest


def test_consume_of_an_escalated_call_after_an_unrelated_change_goes_through() -> None:
    """Escalation widened whom the hold asks; the rule did not change, and would have come to ask the same people."""
    rules = asking("treasurer", escalate=("cfo",))
    world, digest = approved_after_escalation(rules)
    world.definitions = published(world.definitions, [*rules, rule("more", "other", "allow")])

    assert names(consumed(world, digest)) == ["GrantConsumed"]


@pytest.mark.parametrize(
    "now",
    [asking("treasurer"), asking("treasurer", escalate=("ceo",)), asking("ceo", escalate=("cfo",))],
    ids=["no escalation any more", "to somebody else", "others asked first"],
)
def test_consume_of_an_escalated_call_after_other_people_are_asked_for_is_held_again(now: Any) -> None:
    world, digest = approved_after_escalation(asking("treasurer", escalate=("cfo",)))
    world.definitions = published(world.definitions, now)

    assert the(consumed(world, digest), "HoldOpened").cause == "definition_changed"


def test_consume_of_a_call_that_never_escalated_asks_whom_the_rule_asks_first() -> None:
    """That a rule escalates to somebody whom it asks at once as well is no escalation."""
    before = asking("treasurer", "cfo", escalate=("cfo",))
    world = started(definitions=published(Definitions(policies=PolicySet()), before, TOOLS))
    hold = held(world)
    decided(world, hold, "approve", CLARA)
    world.definitions = published(world.definitions, asking("treasurer", escalate=("cfo",)))

    assert the(consumed(world, hold.digest), "HoldOpened").roles == ("treasurer",)


@pytest.mark.parametrize("waited_s", [0, 300], ids=["before it escalates", "once it has escalated"])
def test_edit_into_a_rule_that_asks_others_first_is_refused_though_it_would_escalate_to_the_editor(
    waited_s: int,
) -> None:
    """The escalation that came, if any, was of another rule: those whom this one asks were never asked."""
    large = {**asking("ceo", escalate=("cfo",))[0], "id": "large", "when": "args.amount > 100.0"}
    rules = [large, *asking("treasurer", "cfo", escalate=("cfo",))]
    world = started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))
    hold = held(world)
    world.later(waited_s)

    assert code(decided(world, hold, "edit", CLARA, edited_arguments='{"amount":100000}')) == "edit_denied"


def test_edit_within_the_rule_that_escalated_is_released_by_whom_it_escalated_to() -> None:
    world = started(
        definitions=published(
            Definitions(policies=PolicySet()), asking("treasurer", escalate=("cfo",)), TOOLS
        )
    )
    hold = held(world)
    world.later(300)

    said = decided(world, hold, "edit", CLARA, edited_arguments='{"amount":6}')

    assert names(said)[-1] == "ToolCallReleased"


@pytest.mark.parametrize(
    ("before", "now", "consumes"),
    [
        (("cfo",), ("cfo", "treasurer"), True),
        (("cfo",), ("treasurer",), False),
        (("cfo", "treasurer"), ("treasurer",), False),
        (("cfo",), (), False),
        (("cfo", "reviewer"), (), False),
    ],
    ids=["more may", "another must", "fewer may", "any reviewer must", "a reviewer alone may"],
)
def test_consume_after_the_roles_changed_is_held_again_where_who_could_decide_no_longer_can(
    before: tuple[str, ...], now: tuple[str, ...], consumes: bool
) -> None:
    world = started(definitions=published(Definitions(policies=PolicySet()), asking(*before), TOOLS))
    hold = held(world)
    decided(world, hold, "approve", CLARA)
    world.definitions = published(world.definitions, asking(*now))

    assert ("GrantConsumed" in names(consumed(world, hold.digest))) is consumes


def test_consume_after_any_reviewer_became_a_named_role_is_held_again() -> None:
    world = started()
    digest = released(world)
    world.definitions = published(world.definitions, asking("treasurer"))

    assert the(consumed(world, digest), "HoldOpened").roles == ("treasurer",)


def test_consume_after_the_tool_changed_needs_a_new_approval_of_a_new_digest() -> None:
    world = started()
    digest = released(world)
    world.definitions = published(world.definitions, tools=[{"name": "pay", "description": "another"}])

    said = consumed(world, digest)

    hold = the(said, "HoldOpened")
    assert (hold.revision, hold.digest != digest) == (2, True)
    assert code(consumed(world, digest)) == "digest_mismatch"
    decided(world, hold, "approve")
    assert names(consumed(world, hold.digest)) == ["GrantConsumed"]


def test_consume_of_a_call_proposed_in_a_pause_with_a_tool_changed_in_it_binds_the_new_tool() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    digest = the(proposed(world, "read"), "ToolCallProposed").digest
    changed = [{"name": "read", "description": "another", "annotations": {"readOnlyHint": True}}]
    world.definitions = published(world.definitions, tools=changed)
    world.ask(k.ResumeExecution(), OLGA)

    said = consumed(world, digest)

    assert code(said) == "not_released"
    assert names(consumed(world, the(said, "ToolCallReleased").digest)) == ["GrantConsumed"]


def test_consume_again_of_an_idempotent_tool_goes_through_until_the_definitions_forbid_it() -> None:
    world = started()
    digest = released(world, "again")
    assert names(consumed(world, digest, "a")) == ["GrantConsumed"]
    reported(world, "unknown", "a")
    assert names(consumed(world, digest, "b")) == ["HoldCancelled", "GrantConsumed"]

    world.definitions = published(world.definitions, BANNED)
    assert code(consumed(world, digest, "b")) == "duplicate", "what runs is not taken back from its attempt"
    reported(world, "unknown", "b")
    said = consumed(world, digest, "c")

    assert names(said) == ["CommandRefused"]
    assert code(said) == "not_released"
    ended = k.ReportResult(call_id="c", attempt_id="b", outcome="succeeded")
    assert names(world.ask(ended)) == ["HoldCancelled", "ToolCallSucceeded"]
