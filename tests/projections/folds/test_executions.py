"""The state that an execution shows."""

from __future__ import annotations

import pytest

from projections.folds.executions import execution_json
from projections.folds.rows import Row
from projections.tables.executions import EXECUTIONS
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.message import Message
from schemas.refusals import Refusal
from tests.projections.folding import KEY, events_of, state_of
from tests.projections.folds.test_holds import ASKED, REQUEST_HOLD
from tests.projections.histories import decided, held, judged, proposed, released, started

CALL = proposed("c1")
HOLD = held(KEY, CALL)
PAUSED = x.ExecutionPaused(reason="look first", by="ann@acme")
RESUMED = x.ExecutionResumed(feedback="go on", by="ann@acme")
HELD: list[Message] = [started(), CALL, judged(CALL), HOLD]
ANSWERED = decided(REQUEST_HOLD, "respond", value='"B"')


def execution_after(*bodies: Message) -> Row:
    row = state_of(*bodies).execution
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("history", "state"),
    [
        ([started()], "running"),
        (HELD, "waiting_approval"),
        ([*HELD, ASKED, REQUEST_HOLD], "waiting_clarification"),
        ([*HELD, ASKED, REQUEST_HOLD, ANSWERED], "waiting_approval"),
        ([*HELD, PAUSED], "paused"),
        ([*HELD, decided(HOLD), released(CALL)], "running"),
        ([*HELD, decided(HOLD, resolves=False)], "waiting_approval"),
        ([started(), PAUSED, RESUMED], "resumed"),
        ([started(), PAUSED, RESUMED, CALL], "running"),
        ([*HELD, h.HoldExpired(hold_id=HOLD.hold_id, on_timeout="deny")], "running"),
        ([*HELD, h.HoldCancelled(hold_id=HOLD.hold_id, reason="gone")], "running"),
        ([*HELD, x.ExecutionCancelled(reason="stop", by="ann@acme")], "cancelled"),
        ([*HELD, x.ExecutionFailed(error="boom", by="svc")], "failed"),
        ([started(), x.ExecutionCompleted(result="1", by="svc")], "completed"),
    ],
)
def test_execution_state_after_each_event(history: list[Message], state: str) -> None:
    assert execution_after(*history)["state"] == state


def test_execution_row_has_exactly_the_columns_of_its_table() -> None:
    assert set(execution_after(*HELD)) == set(EXECUTIONS.names)


def test_ended_execution_shows_when_by_whom_and_with_what() -> None:
    shown = execution_json(execution_after(started(), x.ExecutionCompleted(result='{"ok":true}', by="svc")))
    assert (shown["result"], shown["ended_by"], shown["version"]) == ({"ok": True}, "svc", 2)
    assert shown["ended_at"] == shown["updated_at"]


def test_result_after_the_end_does_not_move_the_end() -> None:
    ended = x.ExecutionCompleted(result="1", by="svc")
    late = x.CommandRefused(
        code=Refusal.EXECUTION_CLOSED, command="ProposeToolCall", subject_id="c9", detail="closed", by="svc"
    )
    row = execution_after(started(), ended, late)
    assert row["ended_at_ms"] == events_of([started(), ended])[1].meta.at_ms
    assert row["state"] == "completed"


def test_calls_are_counted_once_whatever_their_revisions() -> None:
    second = proposed("c1", {"amount": 1}, revision=2)
    assert execution_after(*HELD, decided(HOLD, "edit"), second)["calls"] == 1
    assert execution_after(*HELD, proposed("c2"))["calls"] == 2


def test_refusal_for_an_execution_that_never_started_makes_no_row() -> None:
    refused = x.CommandRefused(
        code=Refusal.NOT_FOUND,
        command="ProposeToolCall",
        subject_id="c1",
        detail="no such execution",
        by="svc",
    )
    assert state_of(refused).execution is None
