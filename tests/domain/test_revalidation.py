"""Between release and consumption: what the definitions of that moment make of a release."""

from schemas import commands as k
from tests.domain.steps import ask_two, code, consumed, decided, proposed, released, started
from tests.domain.world import OLGA, RULES, names, published, rule, the

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
    assert names(consumed(world, digest, "b")) == ["GrantConsumed"]

    world.definitions = published(world.definitions, BANNED)
    said = consumed(world, digest, "c")

    assert names(said) == ["CommandRefused"], "what an attempt already runs is not taken back from it"
    assert code(said) == "not_released"
    assert code(consumed(world, digest, "b")) == "duplicate"
    ended = k.ReportResult(call_id="c", attempt_id="b", outcome="succeeded")
    assert names(world.ask(ended)) == ["ToolCallSucceeded"]
