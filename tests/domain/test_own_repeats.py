"""A person's own word, said again after the hold was decided."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import commands as k
from schemas.events.executions import CommandRefused
from schemas.events.holds import DecisionRefused
from tests.domain import ruled
from tests.domain.steps import TESSA, ask_two, code, decided, held, refusal, started
from tests.domain.world import BOT, RITA, World, names, the, with_people

ANSWER: dict[str, Any] = {"decision": "respond", "value": '"yes"'}
WHOLE = "read it in full first"


def asked(world: World, **content: Any) -> Any:
    """A question that waits: its HoldOpened."""
    command = k.RequestHumanInput(
        request_id="q", **{"kind": "clarification", "question": "Which?", **content}
    )
    return the(world.ask(command, BOT), "HoldOpened")


def said(world: World, hold: Any, by: Any = RITA, **content: Any) -> list[Any]:
    """The events of a decision as a way in sends it that names nothing of what was shown."""
    return world.ask(k.DecideHold(hold_id=hold.hold_id, **{**ANSWER, **content}), by)


@pytest.mark.parametrize("shown", [(), ("digest",), ("view_digest",), ("digest", "view_digest")])
@pytest.mark.parametrize("again", [(), ("digest",), ("view_digest",), ("digest", "view_digest")])
def test_answer_again_is_the_same_decision_whatever_either_names_of_what_was_shown(
    shown: tuple[str, ...], again: tuple[str, ...]
) -> None:
    world = started()
    hold = asked(world)
    assert names(said(world, hold, **{name: getattr(hold, name) for name in shown}))[0] == "DecisionRecorded"

    (told,) = said(world, hold, **{name: getattr(hold, name) for name in again})

    assert isinstance(told, CommandRefused)
    assert (told.code, told.subject_id, told.by) == ("duplicate", hold.hold_id, "rita")


@pytest.mark.parametrize(("value", "decision"), [("true", "approve"), ("false", "reject")])
@pytest.mark.parametrize("is_word_first", [True, False])
def test_permission_given_in_other_words_is_the_same_decision(
    value: str, decision: str, is_word_first: bool
) -> None:
    world = started()
    hold = asked(world, kind="permission")
    forms: list[dict[str, Any]] = [{"decision": decision, "value": None}, {"value": value}]
    first, again = forms if is_word_first else reversed(forms)
    assert names(said(world, hold, **first))[0] == "DecisionRecorded"

    assert code(said(world, hold, **again)) == "duplicate"
    other = {"decision": "reject" if decision == "approve" else "approve", "value": None}
    assert code(said(world, hold, **other)) == "already_decided"


def test_answer_of_another_kind_is_in_no_other_words_the_same() -> None:
    world = started()
    hold = asked(world, kind="decision", options="[true,false]")
    said(world, hold, value="false")

    assert code(said(world, hold, decision="reject", value=None)) == "already_decided"


@pytest.mark.parametrize(
    "content",
    [
        {"value": '"no"'},
        {"feedback": "because"},
        {"decision": "reject", "value": None},
        {"by": TESSA},
        {"by": RITA.model_copy(update={"subject": "rita2"})},
    ],
    ids=str,
)
def test_answer_again_that_says_anything_else_or_is_anothers_is_too_late(content: dict[str, Any]) -> None:
    world = started()
    hold = asked(world)
    said(world, hold)
    assert isinstance(refused := refusal(said(world, hold, **content)), DecisionRefused)
    assert (refused.code, refused.winning_decision_id) == (
        "already_decided",
        world.state().holds[hold.hold_id].decision_id,
    )


@pytest.mark.parametrize("proof", ["digest", "view_digest"])
def test_answer_again_about_something_else_that_was_shown_is_no_repeat(proof: str) -> None:
    world = started()
    hold = asked(world)
    said(world, hold)
    assert code(said(world, hold, **{proof: "0" * 64})) == "already_decided"


def test_answer_again_to_what_must_be_read_in_full_names_what_was_read() -> None:
    world = started()
    hold = asked(world, kind="permission", question="x" * 2_001)
    granted = {"value": "true", "view_digest": hold.view_digest}
    assert names(said(world, hold, **granted))[0] == "DecisionRecorded"

    refused = refusal(said(world, hold, value="true"))

    assert refused.code == "invalid"
    assert WHOLE in refused.detail
    assert code(said(world, hold, **granted)) == "duplicate"


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_decide_a_call_again_is_the_same_decision_and_another_is_told_who_was_faster(decision: str) -> None:
    world = started()
    hold = held(world)
    decided(world, hold, decision, view_digest=hold.view_digest)
    before = len(world.events)
    assert code(decided(world, hold, decision)) == "duplicate"
    assert len(world.events) == before + 1
    other = "reject" if decision == "approve" else "approve"
    for actor, word, told in (
        (RITA, other, "rita decided it already"),
        (TESSA, decision, "rita decided it first"),
    ):
        (refused,) = decided(world, hold, word, by=actor)
        assert isinstance(refused, DecisionRefused)
        assert (refused.code, refused.detail) == ("already_decided", told)


def test_edit_again_is_no_repeat_as_its_answer_names_what_it_led_to() -> None:
    world = started()
    hold = held(world)
    decided(world, hold, "edit", edited_arguments='{"amount":4}', view_digest=hold.view_digest)
    assert code(decided(world, hold, "edit", edited_arguments='{"amount":4}')) == "already_decided"


def test_decision_that_makes_a_rule_again_is_no_repeat_as_its_answer_names_the_rule() -> None:
    made = ruled.world()
    waiting = ruled.pay(made, "first")
    assert "RuleAsked" in names(ruled.decide(made, waiting, scope="rule"))
    assert code(ruled.decide(made, waiting, scope="rule")) == "already_decided"


def test_vote_again_on_a_hold_that_needs_another_person_is_told_so() -> None:
    world = started()
    ask_two(world)
    hold = held(world)
    decided(world, hold, "approve", view_digest=hold.view_digest)
    assert code(decided(world, hold, "approve")) == "already_voted"
    decided(world, hold, "approve", TESSA)
    assert [code(decided(world, hold, "approve", by)) for by in (RITA, TESSA)] == [
        "already_decided",
        "duplicate",
    ]


def test_decide_again_by_an_account_that_belongs_to_another_person_now_is_not_their_decision() -> None:
    world = started()
    hold = held(world)
    belongs(world, "rita-before", "rita", "rita-too")
    decided(world, hold, "approve")
    belongs(world, "rita-before", "rita-too")
    belongs(world, "rita-now", "rita")
    assert code(decided(world, hold, "approve")) == "already_decided"


def belongs(world: World, principal: str, *subjects: str) -> None:
    """From now on these accounts are this person's."""
    person = {"principal": principal, "subjects": list(subjects), "roles": ["reviewer"]}
    world.definitions = with_people(world.definitions, person)
