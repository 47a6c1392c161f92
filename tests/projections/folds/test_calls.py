"""The call's row and resource after each event, by the table of docs/architecture.md."""

from __future__ import annotations

from typing import get_args

import pytest

from projections.folds.calls import call_json, call_resource
from projections.folds.rows import Row
from projections.tables.calls import TOOL_CALLS
from schemas.canonical import canonical
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.headers import rfc3339
from schemas.message import Message
from tests.projections.folding import KEY, events_of, state_of
from tests.projections.histories import (
    HOUR_MS,
    START_MS,
    consumed,
    decided,
    denied,
    failed,
    held,
    hold_id_of,
    judged,
    proposed,
    released,
    started,
    succeeded,
)
from tests.schemas.samples import full

CALL = proposed("c1", {"amount": 5, "recipient": "GB29"})
HOLD = held(KEY, CALL)
HELD = [started(), CALL, judged(CALL), HOLD]
RELEASED = [*HELD, decided(HOLD), released(CALL, "d-1")]
CONSUMED = [*RELEASED, consumed(CALL)]
UNKNOWN = c.ToolCallOutcomeUnknown(call_id="c1", attempt_id="a", reason="no result in time")
REVOKED = c.GrantRevoked(call_id="c1", revision=1, reason="role lost", by="ann@acme")
EXPIRED_GRANT = c.GrantRevoked(call_id="c1", revision=1, reason="expired", by="placet:timer")
UNKNOWN_HOLD = held(KEY, CALL, hold_id="h-unknown", cause="outcome_unknown", deadline_at_ms=None)


def call_after(*bodies: Message) -> Row:
    return state_of(*bodies).calls["c1"]


@pytest.mark.parametrize(
    ("history", "status"),
    [
        ([started(), CALL], "proposed"),
        ([started(), CALL, judged(CALL)], "proposed"),
        (HELD, "held"),
        (RELEASED, "released"),
        (CONSUMED, "consumed"),
        ([*CONSUMED, succeeded(CALL)], "succeeded"),
        ([*CONSUMED, failed(CALL)], "failed"),
        ([*CONSUMED, UNKNOWN], "outcome_unknown"),
        ([*CONSUMED, UNKNOWN, UNKNOWN_HOLD], "outcome_unknown"),
        ([*HELD, denied(CALL, "rejected", "no")], "denied"),
        ([*HELD, denied(CALL, "policy")], "denied"),
        ([*HELD, denied(CALL, "halted")], "denied"),
        ([*HELD, denied(CALL, "timeout")], "expired"),
        ([*HELD, c.ToolCallCancelled(call_id="c1", reason="execution cancelled")], "cancelled"),
        ([*RELEASED, REVOKED], "revoked"),
        ([*RELEASED, EXPIRED_GRANT], "expired"),
    ],
)
def test_call_status_after_each_event(history: list[Message], status: str) -> None:
    row = call_after(*history)
    assert row["status"] == status
    is_ended = status in {"succeeded", "failed", "denied", "expired", "cancelled", "revoked"}
    assert (row["ended_at_ms"] is not None) == is_ended


def test_call_row_has_exactly_the_columns_of_its_table() -> None:
    for end in range(2, len(CONSUMED) + 1):
        assert set(call_after(*CONSUMED[:end])) == set(TOOL_CALLS.names)


def test_held_call_shows_hold_deadline_and_verdict_as_in_the_protocol() -> None:
    shown = call_json(call_after(*HELD))
    assert shown["hold_id"] == hold_id_of(KEY, "c1")
    assert shown["deadline_at"] == rfc3339(START_MS + HOUR_MS)
    assert shown["arguments"] == {"amount": 5, "recipient": "GB29"}
    assert shown["approved_arguments"] is None
    assert shown["decision"] is None
    assert shown["grant"] is None
    assert shown["verdict"] == {
        "effect": "hold",
        "rules": ["production@3/payments-over-limit"],
        "risk": {"score": 0.62, "level": "medium", "parts": ["destructive", "open_world"], "required": 0.9},
        "risk_with_values": None,
        "trust": None,
        "adaptive": None,
        "history": None,
        "policy_version": "production@3",
        "reason": "rule",
        "detail": "",
    }


def test_released_call_shows_decision_grant_and_approved_arguments() -> None:
    shown = call_json(call_after(*RELEASED))
    assert shown["deadline_at"] is None
    assert shown["approved_arguments"] == shown["arguments"]
    assert shown["decision"] == {
        "decision_id": decided(HOLD).decision_id,
        "decision": "approve",
        "by": "ann@acme",
        "at": rfc3339(START_MS + 5000),
        "feedback": "",
    }
    assert shown["grant"]["digest"] == CALL.digest
    assert shown["grant"]["expires_at"] == rfc3339(START_MS + HOUR_MS)
    assert shown["grant"]["token"] is None


def test_call_released_by_policy_has_no_decision() -> None:
    shown = call_json(
        call_after(started(), CALL, judged(CALL, "allow"), released(CALL, released_by="policy"))
    )
    assert shown["decision"] is None
    assert shown["grant"]["released_by"] == "policy"


def test_vote_that_does_not_resolve_leaves_the_call_undecided() -> None:
    row = call_after(*HELD, decided(HOLD, resolves=False))
    assert (row["status"], row["decision"], row["deadline_at_ms"]) == ("held", None, START_MS + HOUR_MS)


def test_edited_call_runs_with_the_edit_and_keeps_the_editors_decision() -> None:
    edit = canonical({"amount": 4, "recipient": "GB29"})
    second = proposed("c1", {"amount": 4, "recipient": "GB29"}, revision=2)
    word = decided(HOLD, "edit", edited_arguments=edit)
    shown = call_json(
        call_after(*HELD, word, second, judged(second, "allow"), released(second, word.decision_id))
    )
    assert shown["revision"] == 2
    assert shown["status"] == "released"
    assert shown["approved_arguments"] == {"amount": 4, "recipient": "GB29"}
    assert shown["decision"]["decision"] == "edit"


def test_edit_that_needs_another_word_waits_without_a_decision_or_verdict_of_the_old_revision() -> None:
    second = proposed("c1", {"amount": 9000}, revision=2)
    word = decided(HOLD, "edit", edited_arguments=second.arguments)
    fresh = call_after(*HELD, word, second)
    assert (fresh["status"], fresh["effect"], fresh["deadline_at_ms"]) == ("proposed", None, None)
    again = call_after(*HELD, word, second, judged(second), held(KEY, second))
    assert (again["status"], again["decision"]) == ("held", None)
    assert again["hold_id"] == hold_id_of(KEY, "c1", 2)


def test_reopened_hold_takes_the_grant_away() -> None:
    again = held(KEY, CALL, hold_id="h-2", cause="definition_changed")
    shown = call_json(call_after(*RELEASED, judged(CALL), again))
    assert (shown["status"], shown["grant"], shown["approved_arguments"]) == ("held", None, None)


@pytest.mark.parametrize("model", get_args(h.DeadlineMoved), ids=lambda model: model.__name__)
def test_deadline_that_moves_is_that_of_the_held_call_only(model: type[Message]) -> None:
    moved = full(model).model_copy(update={"hold_id": HOLD.hold_id, "deadline_at_ms": START_MS + 2 * HOUR_MS})
    assert call_after(*HELD, moved)["deadline_at_ms"] == START_MS + 2 * HOUR_MS
    (event,) = events_of([moved.model_copy(update={"hold_id": "another"})])
    row = call_after(*HELD)
    assert call_resource(row, event) is row


def test_event_of_another_call_changes_nothing() -> None:
    row = call_after(*HELD)
    (event,) = events_of([released(proposed("c2"))])
    assert call_resource(row, event) is row


def test_fold_leaves_the_row_that_it_was_given() -> None:
    row = call_after(*HELD)
    before = dict(row)
    (event,) = events_of([released(CALL)])
    assert call_resource(row, event) != row
    assert row == before


def test_denied_call_says_why_and_keeps_the_feedback() -> None:
    word = decided(HOLD, "reject", feedback="wrong account")
    shown = call_json(call_after(*HELD, word, denied(CALL, "rejected", "wrong account")))
    assert (shown["denied_because"], shown["feedback"]) == ("rejected", "wrong account")
    assert shown["decision"]["decision"] == "reject"


def test_call_denied_after_its_release_keeps_nothing_of_the_grant() -> None:
    """A definition became stricter between the release and the consumption."""
    row = call_after(
        started(), CALL, judged(CALL, "allow"), released(CALL, released_by="policy"), denied(CALL, "policy")
    )

    names = ("released_by", "rule_id", "grant_id", "grant_decision_id", "grant_digest", "grant_expires_at_ms")
    assert (row["status"], row["denied_because"], call_json(row)["grant"]) == ("denied", "policy", None)
    assert [row[name] for name in (*names, "approved_arguments")] == [None] * 7


def test_run_again_after_an_unknown_outcome_starts_a_new_attempt() -> None:
    word = decided(UNKNOWN_HOLD)
    row = call_after(*CONSUMED, UNKNOWN, UNKNOWN_HOLD, word, released(CALL, word.decision_id))
    assert (row["status"], row["attempt_id"], row["ended_at_ms"]) == ("released", None, None)
