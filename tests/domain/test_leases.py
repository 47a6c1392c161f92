"""An attempt that dies without a report is noticed when its lease ends; one that gives signs of life runs on."""

import json

import pytest

from schemas import commands as k
from schemas.events.calls import GrantConsumed
from schemas.message import Message
from services.domain.context import LEASE_MS, RUN_TIMEOUT_MS
from services.domain.execution.evolve import evolve
from services.domain.tools import ToolRefused, tool_from_definition
from tests.domain.steps import code, consumed, released, reported, started
from tests.domain.world import BOT, RULES, World, names, published, the

LEASE_S = LEASE_MS // 1000


def running() -> World:
    world = started()
    consumed(world, released(world))
    return world


def renewed(world: World, attempt_id: str = "a") -> list[Message]:
    return world.ask(k.RenewLease(call_id="c", attempt_id=attempt_id), BOT)


def nudged(world: World) -> list[Message]:
    return world.ask(k.ExpireDue(subject_id="x", deadline_at_ms=world.now_ms, attempt=1))


def test_call_whose_attempt_is_silent_waits_for_a_person_when_its_lease_ends() -> None:
    world = running()
    world.later(LEASE_S - 1)
    assert nudged(world) == []
    world.later(1)
    said = nudged(world)
    assert names(said) == ["ToolCallOutcomeUnknown", "HoldOpened"]
    assert the(said, "ToolCallOutcomeUnknown").reason == (
        "its process sent no heartbeat for 60 s and reported no result"
    )
    question = the(said, "HoldOpened").question
    assert all(f"placet {command}" in question for command in ("approve", "reject", "answer"))
    # Afterwards an approval is refused: execution_closed.
    assert "To run it again, while its run goes on: placet approve." in question


def test_sign_of_life_in_the_second_half_of_a_lease_renews_it() -> None:
    world = running()
    world.later(LEASE_S / 2)
    assert the(renewed(world), "LeaseRenewed").lease_until_ms == world.now_ms + LEASE_MS
    world.later(LEASE_S - 1)
    assert nudged(world) == []
    world.later(1)
    assert "ToolCallOutcomeUnknown" in names(nudged(world))


def test_sign_of_life_in_the_first_half_of_a_lease_changes_nothing() -> None:
    world = running()
    world.later(LEASE_S / 2 - 1)
    before = world.state()
    assert code(renewed(world)) == "duplicate"
    assert world.state() == before


def test_signs_of_life_do_not_outlive_the_run_deadline() -> None:
    world = running()
    for _ in range(RUN_TIMEOUT_MS // 1000 // 40):
        world.later(40)
        said = names(renewed(world))
    assert said == ["LeaseRenewed"]
    world.later(RUN_TIMEOUT_MS / 1000 % 40 or 20)
    assert the(nudged(world), "ToolCallOutcomeUnknown").reason == "no result came by the run deadline"


def test_sign_of_life_of_another_attempt_or_of_nothing_that_runs_is_refused() -> None:
    world = running()
    world.later(LEASE_S / 2)
    assert code(renewed(world, "b")) == "already_consumed"
    reported(world, "succeeded")
    assert code(renewed(world)) == "not_released"
    assert code(world.ask(k.RenewLease(call_id="other", attempt_id="a"), BOT)) == "not_found"


def test_result_of_an_attempt_that_was_thought_lost_is_still_taken() -> None:
    world = running()
    world.later(LEASE_S)
    nudged(world)
    assert names(reported(world, "succeeded")) == ["HoldCancelled", "ToolCallSucceeded"]


def test_lease_is_a_setting_of_the_tool() -> None:
    world = started()
    world.definitions = published(world.definitions, tools=[{"name": "pay", "lease_seconds": 300}])
    consumed(world, released(world))
    assert world.state().calls["c"].lease_ms == 300_000


@pytest.mark.parametrize("seconds", [0, 4.9, -1, True, "60", 86_401])
def test_lease_that_is_none_is_refused(seconds: object) -> None:
    with pytest.raises(ToolRefused, match="lease_seconds: a number"):
        tool_from_definition("pay", json.dumps({"name": "pay", "lease_seconds": seconds}))


def test_call_that_was_consumed_before_there_were_leases_has_until_its_run_deadline() -> None:
    world = started()
    digest = released(world)
    old = GrantConsumed(
        call_id="c",
        revision=1,
        digest=digest,
        attempt_id="a",
        run_deadline_at_ms=world.now_ms + RUN_TIMEOUT_MS,
        by="bot",
    )
    state = evolve(world.state(), old, world.now_ms)
    assert state.due["call/c"] == world.now_ms + RUN_TIMEOUT_MS


def silent(tool: str) -> tuple[World, str]:
    """A call whose attempt `a` gave no sign of life: a person is asked."""
    world = started()
    digest = released(world, tool)
    consumed(world, digest)
    world.later(LEASE_S)
    assert names(nudged(world)) == ["ToolCallOutcomeUnknown", "HoldOpened"]
    return world, digest


def test_call_of_an_idempotent_tool_runs_again_after_its_lease_without_a_person() -> None:
    world, digest = silent("again")
    said = consumed(world, digest, "b")
    assert names(said) == ["HoldCancelled", "GrantConsumed"]
    assert the(said, "HoldCancelled").reason == (
        "the tool is idempotent, and another attempt runs the call again"
    )
    asked = {hold.cause: hold.status for hold in world.state().holds.values()}
    assert asked == {"policy": "resolved", "outcome_unknown": "cancelled"}
    assert names(reported(world, "succeeded", "b")) == ["ToolCallSucceeded"]


def test_silent_idempotent_call_runs_again_after_something_else_was_published() -> None:
    """Who is asked what became of it has released nothing: what a person released still stands, time and again."""
    world, digest = silent("again")
    for attempt in ("b", "c"):
        world.definitions = published(world.definitions, RULES)
        assert names(consumed(world, digest, attempt)) == ["HoldCancelled", "GrantConsumed"]
        world.later(LEASE_S)
        nudged(world)


def test_attempt_whose_lease_ended_does_not_run_an_idempotent_tool_again() -> None:
    world, digest = silent("again")
    assert code(consumed(world, digest, "a")) == "not_released"
    consumed(world, digest, "b")
    assert code(consumed(world, digest, "a")) == "already_consumed"


def test_idempotent_call_that_falls_silent_again_asks_a_person_again() -> None:
    world, digest = silent("again")
    consumed(world, digest, "b")
    world.later(LEASE_S)
    said = nudged(world)
    assert the(said, "ToolCallOutcomeUnknown").attempt_id == "b"
    asked = {h.status: h for h in world.state().holds.values() if h.cause == "outcome_unknown"}
    first, second = asked["cancelled"], asked["open"]
    assert (second.roles, second.quorum) == (first.roles, first.quorum)


def test_call_of_another_tool_waits_for_the_person_after_its_lease() -> None:
    world, digest = silent("pay")
    assert code(consumed(world, digest, "b")) == "already_consumed"


def test_silent_idempotent_call_is_not_run_again_by_another_subject() -> None:
    world, digest = silent("again")
    other = BOT.model_copy(update={"subject": "bot-2"})
    said = world.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="b"), other)
    assert code(said) in ("already_consumed", "not_found")


def test_silent_idempotent_call_is_not_run_again_once_its_tool_has_changed() -> None:
    world, digest = silent("again")
    changed = {"name": "again", "idempotent": True, "description": "another"}
    world.definitions = published(world.definitions, tools=[changed])
    assert code(consumed(world, digest, "b")) == "already_consumed"


def test_idempotent_call_that_an_attempt_has_is_run_by_no_other() -> None:
    world = started()
    digest = released(world, "again")
    consumed(world, digest)
    world.later(LEASE_S - 1)
    assert code(consumed(world, digest, "b")) == "already_consumed"
