"""What a hold's row makes of its view is byte for byte what the decider named, whatever came before and after."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from projections.folds.calls import verdict_json
from projections.folds.shown import Run, view_of_row
from projections.queries.history import ExecutionState, fold_all
from schemas import commands as k
from schemas.call_history import CallHistory
from schemas.canonical import canonical
from schemas.events.holds import DecisionRecorded, HoldOpened
from tests.actions.handling import said
from tests.domain.steps import TESSA, ask_two, consumed, decided, held, proposed, released, reported, started
from tests.domain.test_machine import Machine
from tests.domain.test_senders import asked, conversing
from tests.domain.trusting import Known, facts, world_of
from tests.domain.world import BOT, OLGA, RITA, World, names, published, the

NO_RUN: Run = {"user_id": "", "request": ""}
RUN: Run = {"user_id": "ann", "request": "hi"}


def check_views(world: World) -> ExecutionState:
    """Every hold's view, rebuilt from its row, against the log."""
    state = fold_all(world.events)
    execution = state.execution or NO_RUN
    for event in world.events:
        if isinstance(event.body, HoldOpened):
            row = state.holds[event.body.hold_id]
            assert view_of_row(row, execution).digest == event.body.view_digest == row["view_digest"]
            assert bool(row["must_read"]) is world.state().holds[row["hold_id"]].must_read
    return state


class ShownMachine(Machine):
    def teardown(self) -> None:
        check_views(self.world)


TestShown = ShownMachine.TestCase
TestShown.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


def test_view_is_rebuilt_after_an_extension_an_escalation_and_the_end() -> None:
    world = started()
    hold = held(world, "escalate")
    world.ask(said("extend", hold.hold_id, seconds=500), RITA)
    check_views(world)
    world.ask(k.EscalateHold(hold_id=hold.hold_id), RITA)
    world.later(3600)
    world.ask(k.CancelExecution(), OLGA)
    assert check_views(world).holds[hold.hold_id]["roles"] != "[]"


def test_view_is_rebuilt_with_why_trust_did_not_release_the_call() -> None:
    known = CallHistory(numbers=(("amount", 0.0, 1.0),))
    world = world_of(Known(facts(history=known)), {"sample_rate": 0, "floor": {"high": 0.99}})
    hold = held(world, "pay")

    row = check_views(world).holds[hold.hold_id]
    text = view_of_row(row, NO_RUN).text
    verdict = verdict_json(row)
    assert verdict is not None
    assert verdict["risk"]["score"] == 0.7291
    raised = verdict["risk_with_values"]
    assert (raised["score"], raised["level"], raised["required"]) == (0.8104, "high", 0.9383)
    assert {*raised["parts"]} - {*verdict["risk"]["parts"]} == {"novel"}

    assert "\nrisk: high 0.7291, of destructive, " in text
    assert "\ntrust required: 0.9314\ntrust required with new values: 0.9383\n" in text
    assert "\nnot released by trust: new values raise the risk from high 0.7291 to high 0.8104 (" in text


@pytest.mark.parametrize(
    "hostile", ["Pay\u202e \x00 it.", "x" * 3000, "\n" * 80, "Pay it. ", "Pay 1\u03360."]
)
def test_view_is_rebuilt_with_what_the_run_was_asked_for(hostile: str) -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot", user="ann", request=hostile))
    hold = held(world)
    row = check_views(world).holds[hold.hold_id]
    assert (row["view_version"], hold.view_version) == (11, 11)
    assert row["must_read"]
    assert view_of_row(row, {"user_id": "ann", "request": "another"}).digest != hold.view_digest


def test_view_of_a_hold_that_version_1_opened_is_rebuilt_as_version_1() -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot", request="Pay\u202e it."))
    hold = held(world)
    old = [
        event._replace(body=HoldOpened.model_validate({**event.body.__dict__, "view_version": 1}))
        if isinstance(event.body, HoldOpened)
        else event
        for event in world.events
    ]
    state = fold_all(old)
    row = state.holds[hold.hold_id]
    view = view_of_row(row, state.execution or NO_RUN)
    assert view.text.startswith("placet-view 1\nbadges: none\nhold: ")
    assert (view.version, row["must_read"], row["badges"]) == (1, 0, "[]")


@pytest.mark.parametrize("message", ["rm -rf /prod", "Pay\u202e \x00 it.", "x" * 3000, "rm" + "\n" * 80])
def test_view_in_a_turn_is_rebuilt_with_its_message(message: str) -> None:
    world = World()
    world.ask(k.StartExecution(agent="bot", user="ann", request="hi"))
    conversing(OLGA, RITA, world=world, text=message)
    first, question = held(world), asked(world)
    rows = check_views(world).holds
    for hold in (first, question):
        row = rows[hold.hold_id]
        assert (row["request"], row["view_version"]) == (message, 12)
        assert view_of_row(row, RUN).text.count("asked first in the conversation: hi\n") == 1


def test_view_is_rebuilt_for_an_edit_that_waits_for_another() -> None:
    world = started()
    ask_two(world)
    first = held(world)
    (opened,) = [
        event
        for event in decided(world, first, "edit", edited_arguments='{"amount":7,"to":"x"}')
        if isinstance(event, HoldOpened)
    ]
    again = decided(world, opened, "edit", TESSA, edited_arguments='{"amount":8}')
    row = check_views(world).holds[opened.hold_id]
    assert '- "/amount": 5' in view_of_row(row, NO_RUN).text
    assert any(isinstance(event, HoldOpened) for event in again)
    text = view_of_row(check_views(world).holds[the(again, "HoldOpened").hold_id], NO_RUN).text
    assert '- "/amount": 5' in text, "against what the agent proposed, not against the last edit"
    assert '+ "/amount": 8' in text


def test_view_is_rebuilt_for_an_unknown_outcome_and_for_a_request() -> None:
    world = started()
    digest = released(world)
    consumed(world, digest)
    reported(world, "unknown")
    asked = k.RequestHumanInput(
        request_id="r",
        kind="decision",
        question="a\x00b\nc",
        options='["x"]',
        fields='[{"name":"f"}]',
        default='"x"',
    )
    world.ask(asked, BOT)
    rows = check_views(world).holds.values()
    assert {row["cause"] for row in rows} == {"policy", "outcome_unknown", "request"}


@pytest.mark.parametrize(
    "offered",
    [
        {"options": '["keep\u202e"]'},
        {"options": "[]", "fields": '[{"name":"a","description":"b\u200b"}]'},
        {"options": '["keep\u202e"]', "default": '"keep\u202e"', "kind": "decision"},
    ],
)
def test_view_of_a_question_that_hides_text_in_what_it_offers_must_be_read(offered: Any) -> None:
    world = started()
    told = {"request_id": "r", "kind": "permission", "question": "May I?", **offered}
    world.ask(k.RequestHumanInput(**told), BOT)
    (row,) = check_views(world).holds.values()
    assert row["must_read"]
    assert row["badges"] != "[]"


def test_view_is_rebuilt_after_its_secrets_are_erased() -> None:
    world = started()
    sealed = {"handle": "sec_" + "0a" * 16, "commitment": "5e" * 32}
    arguments = canonical({"amount": 5, "to": "x", "token": sealed})
    proposed(world, "unknown", arguments=arguments)
    world.ask(k.CancelExecution(), OLGA)
    erased = world.ask(k.EraseSecrets(call_id="c", request_id="", reason="asked for"), OLGA)
    assert names(erased) == ["SecretsErased"]
    (row,) = check_views(world).holds.values()
    assert f"[redacted sha256:{sealed['commitment']} {sealed['handle']}]" in view_of_row(row, NO_RUN).text


def test_view_is_rebuilt_for_a_hold_that_a_changed_tool_opens_again() -> None:
    world = started()
    digest = released(world)
    world.definitions = published(world.definitions, tools=[{"name": "pay", "description": "another"}])
    consumed(world, digest)
    assert {row["cause"] for row in check_views(world).holds.values()} == {"policy", "definition_changed"}


@pytest.mark.parametrize("hostile", ["\u202e\x00 \\ \u0430a", "x" * 3000, "\n" * 80])
def test_view_is_rebuilt_for_hostile_texts(hostile: str) -> None:
    world = started()
    arguments = canonical({"amount": 5, "to": hostile})
    command = k.ProposeToolCall(call_id="c", tool="pay", arguments=arguments, reason=hostile)
    hold = the(world.ask(command), "HoldOpened")
    row = check_views(world).holds[hold.hold_id]
    assert row["must_read"]


def test_decision_keeps_in_the_row_what_it_says_to_have_seen() -> None:
    world = started()
    hold = held(world)
    said = decided(world, hold, "approve", view_digest=hold.view_digest, dwell_ms=1234)
    recorded: DecisionRecorded = the(said, "DecisionRecorded")
    assert (recorded.view_digest, recorded.dwell_ms) == (hold.view_digest, 1234)
    votes = check_views(world).holds[hold.hold_id]["votes"]
    assert f'"view_digest":"{hold.view_digest}","dwell_ms":1234' in votes


def test_hold_of_an_earlier_version_has_no_view_that_could_be_named() -> None:
    world = started()
    proposed(world, "pay", arguments=canonical({"amount": 5, "to": "x" * 3000}))
    old = [
        event._replace(body=event.body.model_copy(update={"view_digest": "", "risk_level": ""}))
        if isinstance(event.body, HoldOpened)
        else event
        for event in world.events
    ]
    (row,) = fold_all(old).holds.values()
    assert (row["view_digest"], row["must_read"]) == ("", 0)
    assert "verdict: (none)" in view_of_row(row, NO_RUN).text
