"""HoldReminded: asked for by a request or a rule, decided once, in the views, in the audit, told and checked."""

from __future__ import annotations

from typing import Any

import pytest

from projections.folds.audit import entry_of
from projections.folds.effects import Before
from projections.folds.holds import hold_json
from projections.queries.history import fold_all
from schemas import commands as k
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from tests.domain.steps import code, decided, held, started
from tests.domain.world import BOT, CLARA, OLGA, TOOLS, World, names, published, rule, the

NUDGE = k.ExpireDue(subject_id="-", deadline_at_ms=0, attempt=1)
QUESTION = k.RequestHumanInput(
    request_id="q", kind="clarification", question="Which?", timeout_ms=600_000, remind_after_ms=60_000
)


def reminding(**hold: Any) -> World:
    """A run under a rule that reminds people after a minute."""
    terms = {"timeout_seconds": 600, "remind_after_seconds": 60, **hold}
    rules = [rule("pays", "pay", "hold", **terms)]
    return started(definitions=published(Definitions(policies=PolicySet()), rules, TOOLS))


def test_request_without_an_answer_reminds_once_and_still_ends_in_time() -> None:
    world = started()
    opened: Any = the(world.ask(QUESTION, BOT), "HoldOpened")
    assert opened.remind_at_ms == world.now_ms + 60_000
    world.later(59)
    assert world.ask(NUDGE) == []
    world.later(1)
    assert names(world.ask(NUDGE)) == ["HoldReminded"]
    world.later(539)
    assert world.ask(NUDGE) == []
    world.later(1)
    assert names(world.ask(NUDGE)) == ["HoldExpired", "HumanInputProvided"]


def test_hold_of_a_rule_reminds_unless_it_was_decided_before() -> None:
    world = reminding()
    first, second = held(world, call_id="a"), held(world, call_id="b")
    decided(world, first, "approve")
    world.later(60)
    reminded: Any = the(world.ask(NUDGE), "HoldReminded")
    assert reminded.hold_id == second.hold_id
    assert names(decided(world, second, "approve")) == ["DecisionRecorded", "ToolCallReleased"]


def test_hold_that_waits_for_ever_reminds_and_goes_on_waiting() -> None:
    world = reminding(on_timeout="wait")
    hold = held(world)
    world.later(60)
    assert names(world.ask(NUDGE, OLGA)) == ["HoldReminded"]
    world.later(10**6)
    assert world.ask(NUDGE, OLGA) == []
    assert names(decided(world, hold, "approve")) == ["DecisionRecorded", "ToolCallReleased"]


def test_reminder_and_escalation_overdue_together_ask_others_first() -> None:
    world = reminding(escalate={"after_seconds": 120, "roles": ["cfo"]})
    hold = held(world)
    world.later(300)
    assert names(world.ask(NUDGE)) == ["HoldEscalated", "HoldReminded"]
    assert names(decided(world, hold, "approve", CLARA)) == ["DecisionRecorded", "ToolCallReleased"]


def test_hold_past_its_deadline_reminds_nobody() -> None:
    world = reminding()
    held(world)
    world.later(600)
    assert names(world.ask(NUDGE)) == ["HoldExpired", "ToolCallDenied"]


def test_edit_keeps_the_moment_of_the_reminder() -> None:
    world = reminding(quorum=2)
    hold = held(world)
    world.later(30)
    again: Any = the(decided(world, hold, "edit", edited_arguments='{"amount":4}'), "HoldOpened")
    assert again.remind_at_ms == hold.remind_at_ms


@pytest.mark.parametrize("remind_ms", [0, -1, 600_000, 700_000])
def test_request_that_would_remind_after_its_end_is_invalid(remind_ms: int) -> None:
    refused = started().ask(QUESTION.model_copy(update={"remind_after_ms": remind_ms}), BOT)
    assert code(refused) == "invalid"


def test_reminder_is_in_the_views_and_the_audit() -> None:
    world = started()
    opened: Any = the(world.ask(QUESTION, BOT), "HoldOpened")
    before = fold_all(world.events)
    assert hold_json(before.holds[opened.hold_id])["remind_at"] is not None
    world.later(60)
    world.ask(NUDGE)

    rows = Before(before.execution, None, before.holds[opened.hold_id])
    row = entry_of(world.events[-1], rows)

    assert row is not None
    assert (row["subject"], row["action"], row["hold_id"]) == ("placet:timer", "remind", opened.hold_id)
    assert hold_json(fold_all(world.events).holds[opened.hold_id])["remind_at"] is None
