"""One tool call: proposed, consumed, reported, revoked; and every way in which that is refused."""

from typing import Any

import pytest

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.calls import ToolCallFailed, ToolCallReleased
from schemas.limits import ARGUMENTS_MAX_BYTES
from services.domain.context import LEASE_MS
from services.domain.execution.evolve import evolve
from tests.domain.steps import code, consumed, decided, held, proposed, released, reported, started
from tests.domain.world import (
    ANNA,
    BOT,
    OLGA,
    OTHER_BOT,
    PROJECT,
    RITA,
    TENANT,
    World,
    names,
    published,
    the,
)

LARGE = '{"a":"' + "x" * ARGUMENTS_MAX_BYTES + '"}'


def test_propose_allowed_tool_releases_at_once() -> None:
    said = proposed(started(), "read")

    assert names(said) == ["ToolCallProposed", "PolicyVerdictIssued", "ToolCallReleased"]
    assert the(said, "ToolCallReleased").released_by == "policy"


def test_propose_banned_tool_is_denied_by_policy() -> None:
    assert the(proposed(started(), "drop"), "ToolCallDenied").cause == "policy"


def test_propose_unknown_tool_is_held() -> None:
    assert names(proposed(started(), "never-published"))[-1] == "HoldOpened"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"arguments": LARGE}, "too_large"),
        ({"arguments": "[1]"}, "malformed"),
        ({"arguments": '{"a": 1}'}, "malformed"),
        ({"arguments": '{"a":1,"a":2}'}, "malformed"),
        ({"arguments": '{"a":9007199254740992}'}, "malformed"),
        ({"arguments": '{"a":' + "[" * 64 + "]" * 64 + "}"}, "too_large"),
        ({"claims": "null"}, "malformed"),
        ({"context": "{"}, "malformed"),
        ({"call_id": ""}, "invalid"),
        ({"call_id": "call/a"}, "invalid"),
        ({"call_id": "x" * 129}, "invalid"),
    ],
)
def test_propose_bad_content_is_refused(content: dict[str, str], expected: str) -> None:
    world = started()
    fields: dict[str, Any] = {"call_id": "c", "tool": "read", "arguments": "{}", **content}

    assert code(world.ask(k.ProposeToolCall(**fields))) == expected
    assert not world.state().calls


def test_propose_same_id_same_body_is_a_duplicate_and_other_body_a_reuse() -> None:
    world = started()
    proposed(world, "read")

    assert code(proposed(world, "read")) == "duplicate"
    assert code(proposed(world, "read", arguments='{"amount":6}')) == "id_reused"


def test_propose_for_another_agent_is_not_found_before_its_content_is_looked_at() -> None:
    world = started()
    command = k.ProposeToolCall(call_id="", tool="read", arguments=LARGE)

    assert code(world.ask(command, OTHER_BOT)) == "not_found"


def test_propose_to_a_closed_execution_is_refused_but_a_repeat_is_a_duplicate() -> None:
    world = started()
    proposed(world, "read")
    world.ask(k.CompleteExecution())

    assert code(proposed(world, "read")) == "duplicate"
    assert code(proposed(world, "read", "d")) == "execution_closed"


def test_propose_while_paused_is_judged_on_resume_in_the_order_of_ids() -> None:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    for call_id in ("c2", "c1", "c3"):
        assert names(proposed(world, "read", call_id)) == ["ToolCallProposed"]

    resumed = world.ask(k.ResumeExecution(), OLGA)

    assert [body.call_id for body in resumed if isinstance(body, ToolCallReleased)] == ["c1", "c2", "c3"]


def test_consume_twice_same_attempt_is_a_duplicate_and_another_is_refused() -> None:
    world = started()
    digest = released(world)

    assert names(consumed(world, digest, "a")) == ["GrantConsumed"]
    assert code(consumed(world, digest, "a")) == "duplicate"
    assert code(consumed(world, digest, "b")) == "already_consumed"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("unknown", "not_released"), ("succeeded", "already_consumed"), ("failed", "already_consumed")],
)
def test_consume_again_by_the_attempt_after_its_own_result_is_no_leave_to_run(
    outcome: str, said: str
) -> None:
    world = started()
    digest = released(world)
    consumed(world, digest, "a")
    reported(world, outcome)

    assert code(consumed(world, digest, "a")) == said


def test_consume_of_a_second_release_needs_another_attempt_than_the_first() -> None:
    world, digest = _released_twice("pay")

    assert code(consumed(world, digest, "a")) == "already_consumed"
    assert code(reported(world, "succeeded", "a")) == "not_released"
    assert names(consumed(world, digest, "b")) == ["GrantConsumed"]
    assert code(consumed(world, digest, "a")) == "already_consumed"
    assert code(consumed(world, digest, "b")) == "duplicate"
    assert code(reported(world, "unknown", "a")) == "already_consumed"


def test_case_04_consume_under_another_grant_than_the_newest_is_refused_and_uses_up_nothing() -> None:
    world, digest = _released_twice("pay")
    first, second = [body.grant_id for body in _releases(world)]
    command = k.ConsumeGrant(call_id="c", digest=digest, attempt_id="b")

    for other in (first, "of another call"):
        assert code(world.ask(command.model_copy(update={"grant_id": other}))) == "not_released"
    assert names(world.ask(command.model_copy(update={"grant_id": second}))) == ["GrantConsumed"]
    assert code(world.ask(command.model_copy(update={"grant_id": second}))) == "duplicate"
    assert code(world.ask(command.model_copy(update={"grant_id": first}))) == "not_released"
    assert code(world.ask(command)) == "duplicate", "where no grant is named, the newest is meant"


def test_grants_of_two_executions_and_projects_have_their_own_ids_for_one_command_id() -> None:
    """A program on Kafka chooses the ids of its commands, and may choose one twice."""
    grants = []
    for project in ("main", "second"):
        world = World(project=project)
        for execution_id in ("e1", "e2"):
            world.ask(k.StartExecution(agent="bot"), execution_id=execution_id)
            proposal = k.ProposeToolCall(call_id="c", tool="read", arguments="{}")
            world.ask(proposal, command_id="chosen", execution_id=execution_id)
        grants += [body.grant_id for body in _releases(world)]
    assert len(set(grants)) == 4


def _releases(world: World) -> list[ToolCallReleased]:
    return [event.body for event in world.events if isinstance(event.body, ToolCallReleased)]


def test_consume_by_the_first_attempt_after_the_second_release_was_revoked_or_revised_is_refused() -> None:
    world, digest = _released_twice("pay")
    world.ask(k.RevokeGrant(call_id="c"), OLGA)
    assert code(consumed(world, digest, "a")) == "not_released"

    world, digest = _released_twice("pay")
    changed = {"name": "pay", "annotations": {"destructiveHint": True}, "description": "now for good"}
    world.definitions = published(world.definitions, tools=[changed])
    hold = the(consumed(world, digest, "b"), "HoldOpened")
    decided(world, hold, "approve")
    assert code(consumed(world, hold.digest, "a")) == "already_consumed", "another digest, the same call"
    assert names(consumed(world, hold.digest, "b")) == ["GrantConsumed"], "it never had the call"


def test_consume_by_an_attempt_whose_idempotent_call_another_has_taken_over_is_refused() -> None:
    world = started()
    digest = released(world, "again")
    assert names(consumed(world, digest, "a")) == ["GrantConsumed"]
    reported(world, "unknown", "a")
    assert names(consumed(world, digest, "b")) == ["HoldCancelled", "GrantConsumed"]

    assert code(consumed(world, digest, "a")) == "already_consumed"
    assert code(consumed(world, digest, "b")) == "duplicate"


def _released_twice(tool: str) -> tuple[World, str]:
    """A call whose attempt `a` ended with an unknown outcome, approved once more."""
    world = started()
    digest = released(world, tool)
    consumed(world, digest, "a")
    unknown = the(reported(world, "unknown"), "HoldOpened")
    the(decided(world, unknown, "approve"), "ToolCallReleased")
    return world, digest


@pytest.mark.parametrize("attempt_id", ["", "with blank", "x" * 129])
def test_consume_without_a_proper_attempt_is_invalid_never_a_repeat(attempt_id: str) -> None:
    """An empty attempt would equal that of a call which nobody has consumed."""
    world = started()
    digest = released(world)

    assert code(consumed(world, digest, attempt_id)) == "invalid"


def test_consume_held_call_is_not_released_and_another_digest_is_named_first() -> None:
    world = started()
    hold = held(world)

    assert code(consumed(world, hold.digest)) == "not_released"
    assert code(consumed(world, "0" * 64)) == "digest_mismatch"


def test_consume_for_another_agent_is_not_found() -> None:
    world = started()
    digest = released(world)
    command = k.ConsumeGrant(call_id="c", digest=digest, attempt_id="a")

    assert code(world.ask(command, OTHER_BOT)) == "not_found"
    assert code(world.ask(command, RITA)) == "not_found"


def test_consume_while_paused_waits_for_the_resume() -> None:
    world = started()
    digest = released(world)
    world.ask(k.PauseExecution(), OLGA)
    assert code(consumed(world, digest)) == "not_released"

    world.ask(k.ResumeExecution(), OLGA)
    assert names(consumed(world, digest)) == ["GrantConsumed"]


def test_consume_after_cancel_says_that_the_execution_is_closed() -> None:
    world = started()
    digest = released(world)
    world.ask(k.CancelExecution(), OLGA)

    assert code(consumed(world, digest)) == "execution_closed"
    assert code(consumed(world, "0" * 64)) == "execution_closed", "it precedes digest_mismatch"


def test_consume_after_the_grant_expired_is_refused_as_expired() -> None:
    world = started()
    digest = released(world)
    world.later(15 * 60)

    said = consumed(world, digest)

    assert names(said) == ["GrantRevoked", "CommandRefused"]
    assert code(said) == "expired"


def test_consume_revoked_grant_is_not_released() -> None:
    world = started()
    digest = released(world)
    revoked = the(world.ask(k.RevokeGrant(call_id="c", reason="expired"), OLGA), "GrantRevoked")

    assert (revoked.by, revoked.reason) == ("olga", "revoked"), "nobody but the timer lets a grant expire"
    assert code(consumed(world, digest)) == "not_released"


@pytest.mark.parametrize("actor", [BOT, ANNA])
def test_revoke_by_the_agent_or_an_analyst_is_not_authorised(actor: Any) -> None:
    world = started()
    released(world)

    assert code(world.ask(k.RevokeGrant(call_id="c"), actor)) == "not_authorised"


def test_report_by_the_attempt_that_consumed_ends_the_call_once() -> None:
    world = started()
    consumed(world, released(world))

    assert names(reported(world, "succeeded", output="7")) == ["ToolCallSucceeded"]
    assert code(reported(world, "succeeded", output="7")) == "duplicate"
    assert world.state().calls["c"].arguments == "", "what has ended keeps no arguments"


def test_report_that_contradicts_the_first_is_refused() -> None:
    world = started()
    consumed(world, released(world))
    reported(world, "succeeded", output="7")

    assert code(reported(world, "failed")) == "id_reused"
    assert code(reported(world, "unknown")) == "id_reused"
    assert code(reported(world, "succeeded", output="8")) == "id_reused"
    assert world.state().calls["c"].status == "succeeded"


def test_report_before_consumption_by_another_attempt_or_not_json_is_refused() -> None:
    world = started()
    digest = released(world)
    assert code(reported(world, "succeeded")) == "not_released"
    consumed(world, digest)

    assert code(reported(world, "succeeded", "b")) == "already_consumed"
    assert code(reported(world, "succeeded", output="{oops")) == "malformed"
    assert names(reported(world, "succeeded")) == ["ToolCallSucceeded"]


def test_report_late_result_settles_the_unknown_outcome() -> None:
    world = started()
    consumed(world, released(world))
    reported(world, "unknown")

    assert names(reported(world, "succeeded", output="1")) == ["HoldCancelled", "ToolCallSucceeded"]
    assert world.state().calls["c"].status == "succeeded"


def test_report_late_result_against_what_a_person_settled_is_refused() -> None:
    world = started()
    consumed(world, released(world))
    hold = the(reported(world, "unknown"), "HoldOpened")
    settled = decided(world, hold, "respond", value='"done"')

    assert names(settled) == ["DecisionRecorded", "ToolCallSucceeded"]
    assert code(reported(world, "failed")) == "id_reused"
    assert code(reported(world, "succeeded", output='"done"')) == "duplicate"


def test_report_of_a_consumed_call_is_taken_after_the_run_was_closed() -> None:
    world = started()
    consumed(world, released(world))
    world.ask(k.CancelExecution(), OLGA)

    assert names(reported(world, "succeeded")) == ["ToolCallSucceeded"]


BANK = Actor(subject="bank", tenant=TENANT, project=PROJECT, roles=("tool:pay", "tool:again"))


@pytest.mark.parametrize("by", [BOT, OLGA], ids=["its agent", "an operator"])
def test_report_by_another_than_who_consumed_is_refused_and_the_true_result_is_taken(by: Actor) -> None:
    world = started()
    world.ask(k.ConsumeGrant(call_id="c", digest=released(world), attempt_id="a"), BANK)
    before = world.state()
    for outcome in ("succeeded", "failed", "unknown"):
        assert code(world.ask(_result(outcome), by)) == "already_consumed"
    assert world.state() == before
    assert names(world.ask(_result("succeeded"), BANK)) == ["ToolCallSucceeded"]
    assert code(world.ask(_result("succeeded"), by)) == "already_consumed", "nor is it confirmed to them"


def test_report_on_an_unknown_outcome_is_of_who_consumed_and_a_person_settles_it_otherwise() -> None:
    world = started()
    world.ask(k.ConsumeGrant(call_id="c", digest=released(world), attempt_id="a"), BANK)
    hold = the(world.ask(_result("unknown"), BANK), "HoldOpened")
    assert code(world.ask(_result("failed"), BOT)) == "already_consumed"
    assert "ToolCallSucceeded" in names(decided(world, hold, "respond", value='"done"'))


def test_renew_by_another_than_who_consumed_is_refused() -> None:
    world = started()
    world.ask(k.ConsumeGrant(call_id="c", digest=released(world), attempt_id="a"), BANK)
    world.later(LEASE_MS // 2000)
    assert code(world.ask(k.RenewLease(call_id="c", attempt_id="a"), BOT)) == "already_consumed"
    assert names(world.ask(k.RenewLease(call_id="c", attempt_id="a"), BANK)) == ["LeaseRenewed"]


def test_consume_again_of_an_idempotent_tool_is_of_who_consumed() -> None:
    """Who takes an attempt over has the word on how it ended."""
    world = started()
    digest = released(world, "again")
    assert names(world.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="a"), BANK)) == [
        "GrantConsumed"
    ]
    world.ask(k.ReportResult(call_id="c", attempt_id="a", outcome="unknown"), BANK)
    assert code(consumed(world, digest, "b")) == "already_consumed"
    assert names(world.ask(k.ConsumeGrant(call_id="c", digest=digest, attempt_id="b"), BANK)) == [
        "HoldCancelled",
        "GrantConsumed",
    ]


def test_fold_of_a_result_that_an_earlier_version_took_from_another_is_as_it_was() -> None:
    world = started()
    world.ask(k.ConsumeGrant(call_id="c", digest=released(world), attempt_id="a"), BANK)
    old = ToolCallFailed(call_id="c", attempt_id="a", error="no", duration_ms=1, by="bot")
    assert evolve(world.state(), old, world.now_ms).calls["c"].status == "failed"


def _result(outcome: Any) -> k.ReportResult:
    return k.ReportResult(call_id="c", attempt_id="a", outcome=outcome)
