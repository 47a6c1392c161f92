"""A proposal that names its attempt: let through, it is consumed with the same decision; else as ever."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from schemas.canonical import canonical
from services.domain.context import LEASE_MS, RUN_TIMEOUT_MS
from tests.domain.steps import code, consumed, decided, reported, started
from tests.domain.world import BOT, OLGA, World, names, the

AT_ONCE = ["ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased", "GrantConsumed"]
PLACEHOLDER = {"handle": "sec_" + "0" * 32, "commitment": "1" * 64}


def asked(world: World, tool: str = "read", attempt_id: str | None = "a", **changes: Any) -> list[Any]:
    fields: dict[str, Any] = {"call_id": "c", "tool": tool, "arguments": '{"amount":5}', **changes}
    actor = fields.pop("actor", BOT)
    return world.ask(k.ProposeToolCall(attempt_id=attempt_id, **fields), actor)


def test_allowed_call_is_consumed_by_the_attempt_that_proposed_it() -> None:
    world = started()
    said = asked(world)

    assert names(said) == AT_ONCE
    grant, proposed = the(said, "GrantConsumed"), the(said, "ToolCallProposed")
    assert (grant.attempt_id, grant.by, grant.digest) == ("a", BOT.subject, proposed.digest)
    assert (grant.lease_ms, grant.run_deadline_at_ms) == (LEASE_MS, world.now_ms + RUN_TIMEOUT_MS)
    assert names(reported(world, "succeeded")) == ["ToolCallSucceeded"]


def test_consumed_at_once_says_of_the_attempt_what_a_consumption_does() -> None:
    at_once, later = started(), started()
    asked(at_once)
    release = the(asked(later, attempt_id=None), "ToolCallReleased")
    consumed(later, release.digest)

    assert at_once.state().calls["c"] == later.state().calls["c"]


@pytest.mark.parametrize(("tool", "last"), [("pay", "HoldOpened"), ("drop", "ToolCallDenied")])
def test_call_that_is_not_let_through_is_not_consumed(tool: str, last: str) -> None:
    said = asked(started(), tool)

    assert names(said)[-1] == last
    assert "GrantConsumed" not in names(said)


def test_approved_call_is_consumed_later_and_may_be_by_the_attempt_that_proposed_it() -> None:
    world = started()
    hold = the(asked(world, "pay"), "HoldOpened")
    decided(world, hold, "approve")

    assert world.state().calls["c"].status == "released"
    assert names(consumed(world, hold.digest, "a")) == ["GrantConsumed"]


def test_parked_call_is_released_on_resume_and_not_consumed() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    assert names(asked(world)) == ["ToolCallProposed"]

    assert "GrantConsumed" not in names(world.ask(k.ResumeExecution(), OLGA))
    assert world.state().calls["c"].status == "released"


def test_sealed_arguments_are_handed_over_for_a_consumption_alone() -> None:
    said = asked(started(), arguments=canonical({"amount": 5, "key": PLACEHOLDER}))

    assert names(said) == AT_ONCE[:-1]


def test_repeat_by_the_attempt_that_has_the_call_is_a_duplicate() -> None:
    world = started()
    asked(world)

    assert code(asked(world)) == "duplicate"
    reported(world, "succeeded")
    assert code(asked(world)) == "duplicate"


def test_repeat_with_another_attempt_or_by_another_subject_has_no_leave() -> None:
    world = started()
    asked(world)

    assert code(asked(world, attempt_id="b")) == "already_consumed"
    assert code(asked(world, actor=OLGA)) == "already_consumed"
    assert code(asked(world, attempt_id=None)) == "duplicate"


def test_repeat_with_an_attempt_never_consumes() -> None:
    world = started()
    release = the(asked(world, attempt_id=None), "ToolCallReleased")

    assert code(asked(world, attempt_id="b")) == "duplicate"
    assert world.state().calls["c"].status == "released"
    assert names(consumed(world, release.digest, "b")) == ["GrantConsumed"]


def test_another_body_under_the_id_is_a_reuse_whatever_its_attempt() -> None:
    world = started()
    asked(world)

    assert code(asked(world, arguments='{"amount":6}')) == "id_reused"


@pytest.mark.parametrize("attempt_id", ["", "a/b", "x" * 129])
def test_attempt_of_no_form_is_refused_before_anything_is_proposed(attempt_id: str) -> None:
    world = started()

    assert code(asked(world, attempt_id=attempt_id)) == "invalid"
    assert not world.state().calls


def test_attempt_that_dies_leaves_the_call_to_a_person() -> None:
    world = started()
    asked(world)
    world.later(LEASE_MS // 1000 + 1)

    assert names(asked(world)) == ["ToolCallOutcomeUnknown", "HoldOpened", "CommandRefused"]
    assert code(consumed(world, world.state().calls["c"].digest, "a")) == "not_released"
