"""ReportImpact and ImpactReported: at the door, decided, beside trust in the same partition, in views and audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.actions import calls as actions
from gateway.bodies import read_body
from gateway.problems import Problem
from projections.folds.audit import entry_of
from projections.folds.calls import call_json
from projections.folds.effects import Before
from projections.queries.history import fold_all
from schemas import commands as k
from schemas.actor import Actor
from schemas.limits import IMPACT_REPORTS_MAX, TEXT_MAX_CHARS
from schemas.message import Message
from services.domain.trust.reading import Contrary
from services.runtime import executions_partition
from tests.domain.steps import code, consumed, decided, held, proposed, refusal, released, reported, started
from tests.domain.world import ANNA, BOT, CLARA, OLGA, PROJECT, RITA, TENANT, World, names, the, with_people

HARM = "it paid the invoice twice"
PHIL = Actor(subject="phil", tenant=TENANT, project=PROJECT, roles=("reviewer",))


def report(call_id: str = "c", reason: str = HARM) -> k.ReportImpact:
    return k.ReportImpact(call_id=call_id, reason=reason)


def ran(outcome: str = "succeeded", world: World | None = None) -> World:
    """A call that a person approved, and that ran."""
    world = world or started()
    consumed(world, released(world))
    reported(world, outcome)
    return world


def in_doubt() -> tuple[World, Any]:
    """A call whose outcome nobody knows, and the hold that asks for it."""
    world = started()
    consumed(world, released(world))
    return world, the(reported(world, "unknown"), "HoldOpened")


def reviewer(number: int) -> Actor:
    return PHIL.model_copy(update={"subject": f"reviewer-{number}"})


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "x" * (TEXT_MAX_CHARS + 1)}])
def test_door_takes_no_report_without_a_reason(body: dict[str, Any]) -> None:
    with pytest.raises(Problem, match="reason"):
        read_body(actions.ReportImpact, body)


@pytest.mark.parametrize("reason", ["", " \n", "\u200b"])
def test_report_without_a_reason_is_invalid(reason: str) -> None:
    refused = ran().ask(report(reason=reason), RITA)
    assert (code(refused), refusal(refused).detail) == ("invalid", "reason must not be blank")


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "unknown"])
def test_report_names_what_it_is_about_and_changes_no_status(outcome: str) -> None:
    world = ran(outcome)
    before = world.state().calls["c"]

    impact = the(world.ask(report(), RITA), "ImpactReported")

    after = world.state().calls["c"]
    assert (impact.call_id, impact.revision, impact.agent, impact.tool) == ("c", 1, "bot", "pay")
    assert impact.trust_class == before.trust_class != ""
    assert (impact.reason, impact.by) == (HARM, "rita")
    assert (after.status, after.impact_by) == (before.status, ("rita",))


def test_report_of_a_call_under_way_is_taken_and_the_call_goes_on() -> None:
    world = started()
    consumed(world, released(world))
    assert names(world.ask(report(), OLGA)) == ["ImpactReported"]
    assert names(reported(world, "succeeded")) == ["ToolCallSucceeded"]


@pytest.mark.parametrize("actor", [BOT, ANNA, CLARA])
def test_report_by_the_agent_or_somebody_without_the_role_is_not_authorised(actor: Actor) -> None:
    assert code(ran().ask(report(), actor)) == "not_authorised"


def test_report_of_an_unknown_call_or_execution_is_not_found() -> None:
    assert code(ran().ask(report("none"), RITA)) == "not_found"
    assert code(World().ask(report(), RITA)) == "not_found"


def paused() -> World:
    world = started()
    world.ask(k.PauseExecution(), OLGA)
    proposed(world, "pay")
    return world


def waiting() -> World:
    world = started()
    held(world)
    return world


def let_go() -> World:
    world = started()
    released(world)
    return world


def revoked() -> World:
    world = let_go()
    world.ask(k.RevokeGrant(call_id="c"), OLGA)
    return world


@pytest.mark.parametrize(
    ("made", "detail"),
    [
        (
            paused,
            "the call is proposed: it waits for its verdict; cancel the execution if the call must not run",
        ),
        (waiting, "the call is held: it waits for a person; reject it if it must not run"),
        (let_go, "the call is released: it was not consumed yet; revoke it if it must not run"),
        (revoked, "the call is revoked: only the impact of a call that ran can be reported"),
    ],
)
def test_report_of_a_call_that_has_not_run_says_what_to_do(made: Callable[[], World], detail: str) -> None:
    refused = made().ask(report(), RITA)
    assert (code(refused), refusal(refused).detail) == ("not_open", detail)


def test_report_of_a_call_that_may_run_again_is_of_the_run_before() -> None:
    world, doubt = in_doubt()
    decided(world, doubt, "approve")
    assert world.state().calls["c"].status == "released"
    assert names(world.ask(report(), RITA)) == ["ImpactReported"]
    world.ask(k.RevokeGrant(call_id="c"), OLGA)
    assert names(world.ask(report(), OLGA)) == ["ImpactReported"]


def test_report_again_by_the_same_person_is_a_duplicate_and_by_another_counts() -> None:
    world = ran()
    person = {"principal": "phil", "subjects": ["phil", "phil@laptop"], "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, person)
    for actor in (RITA, PHIL):
        assert names(world.ask(report(), actor)) == ["ImpactReported"]
        assert code(world.ask(report(reason="and more"), actor)) == "duplicate"
    other_account = PHIL.model_copy(update={"subject": "phil@laptop"})
    assert code(world.ask(report(), other_account)) == "duplicate"
    assert world.state().calls["c"].impact_by == ("rita", "phil")


def test_report_repeated_as_the_same_command_yields_no_events() -> None:
    world = ran()
    assert names(world.ask(report(), RITA, "once")) == ["ImpactReported"]
    assert world.ask(report(), RITA, "once") == []


def test_reports_of_one_call_have_a_limit() -> None:
    world = ran()
    for number in range(IMPACT_REPORTS_MAX):
        assert names(world.ask(report(), reviewer(number))) == ["ImpactReported"]
    assert code(world.ask(report(), reviewer(IMPACT_REPORTS_MAX))) == "quota"
    assert code(world.ask(report(), reviewer(0))) == "duplicate"


def test_report_after_the_end_of_the_run_is_taken_as_long_as_it_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions_partition, "RECENT_MAX", 1)
    world = ran()
    world.ask(k.CompleteExecution(), BOT)
    assert world.key() in world.partition.recent
    assert names(world.ask(report(), RITA)) == ["ImpactReported"]
    assert world.key() in world.partition.recent, "nothing of it is open again"

    world.ask(k.StartExecution(agent="bot"), execution_id="next")
    world.ask(k.CancelExecution(), OLGA, execution_id="next")

    assert world.key() in world.partition.forgotten
    assert code(world.ask(report(), OLGA)) == "execution_closed"


def test_report_counts_in_its_partition_at_once() -> None:
    world = ran()
    call = world.state().calls["c"]
    name = (TENANT, PROJECT, call.agent, call.tool, call.trust_class)
    assert world.partition.contrary.of(name) is None
    world.ask(report(), RITA)
    assert world.partition.contrary.of(name) == Contrary(0, len(world.events) - 1)
    assert world.partition.contrary.of((*name[:4], "another class")) is None


def test_report_is_on_the_call_in_the_views_and_does_not_move_its_end() -> None:
    world = ran()
    before = fold_all(world.events).calls["c"]
    assert call_json(before)["impact_reports"] == 0
    world.later(86_400)
    world.ask(report(), RITA)
    world.ask(report(), OLGA)

    after = fold_all(world.events).calls["c"]

    assert call_json(after)["impact_reports"] == 2
    assert (after["status"], after["ended_at_ms"]) == ("succeeded", before["ended_at_ms"])
    assert after["updated_at_ms"] == world.now_ms


def last_entry(world: World, *bodies: Message) -> Any:
    """The audit row of the last event."""
    before = fold_all(world.events[: -len(bodies)])
    row = entry_of(world.events[-1], Before(before.execution, before.calls["c"], None))
    assert row is not None
    return row


def test_audit_tells_who_reported_what_and_who_was_refused() -> None:
    world = ran()
    arguments = fold_all(world.events).calls["c"]["arguments"]

    row = last_entry(world, *world.ask(report(), RITA))
    assert (row["subject"], row["action"], row["call_id"]) == ("rita", "report_impact", "c")
    assert (row["before"], row["feedback"]) == (arguments, HARM)

    refused = last_entry(world, *world.ask(report(), ANNA))
    assert (refused["subject"], refused["action"]) == ("anna", "report_impact_refused")
