"""The execution: one run of an agent, and the state that it shows."""

from typing import Any

from projections.folds.holds import STAYS_OPEN
from projections.folds.rows import Change, Row, json_value, moment, owner_of
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.message import Message
from schemas.record import Event

CLOSED = frozenset({"completed", "failed", "cancelled"})
LIVE = frozenset({"running", "paused", "waiting_clarification", "waiting_approval", "resumed"})


def execution_resource(previous: Row | None, event: Event, *, hold: Row | None = None) -> Row | None:
    """The execution's row after an event.

    Args:
        previous: its row, or None before it started.
        event: any event of the execution.
        hold: the row, before the event, of the hold that the event names; needed where a hold closes.

    Returns:
        The row; None while the execution was not started (refusals may come first).
    """
    body = event.body
    if previous is None:
        return _started(body, event) if isinstance(body, x.ExecutionStarted) else None
    row = previous | {"version": event.meta.version, "updated_at_ms": event.meta.at_ms}
    if row["lifecycle"] == "resumed":
        row["lifecycle"] = "running"
    change = _CHANGES.get(type(body))
    if change is not None:
        row |= change(body, event)
        if row["lifecycle"] in CLOSED and row["ended_at_ms"] is None:
            row["ended_at_ms"] = event.meta.at_ms
    elif isinstance(body, h.HoldOpened):
        row[_counter(body.kind)] += 1
    elif isinstance(body, c.ToolCallProposed):
        row["calls"] += body.revision == 1
    elif hold is not None and hold["status"] == "open" and _closes(body):
        row[_counter(hold["kind"])] -= 1
    row["state"] = _state(row)
    return row


def execution_json(row: Row) -> dict[str, Any]:
    """The execution as REST and the sockets serve it, from its row."""
    return {
        "tenant": row["tenant"],
        "project": row["project"],
        "execution_id": row["execution_id"],
        "state": row["state"],
        "agent": row["agent"],
        "user": row["user_id"],
        "workspace": row["workspace"],
        "request": row["request"],
        "context": json_value(row["context"]),
        "version": row["version"],
        "calls": row["calls"],
        "open_holds": row["open_approvals"] + row["open_questions"],
        "result": json_value(row["result"]),
        "error": row["error"],
        "reason": row["reason"],
        "started_by": row["started_by"],
        "ended_by": row["ended_by"],
        "started_at": moment(row["started_at_ms"]),
        "updated_at": moment(row["updated_at_ms"]),
        "ended_at": moment(row["ended_at_ms"]),
    }


def _started(body: x.ExecutionStarted, event: Event) -> Row:
    return {
        **owner_of(event),
        "agent": body.agent,
        "user_id": body.user,
        "workspace": body.workspace,
        "request": body.request,
        "context": body.context,
        "state": "running",
        "lifecycle": "running",
        "open_approvals": 0,
        "open_questions": 0,
        "calls": 0,
        "version": event.meta.version,
        "result": None,
        "error": None,
        "reason": None,
        "started_by": body.by,
        "ended_by": None,
        "started_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "ended_at_ms": None,
        "log_partition": event.partition,
    }


def _state(row: Row) -> str:
    lifecycle: str = row["lifecycle"]
    if lifecycle in CLOSED or lifecycle == "paused":
        return lifecycle
    if row["open_questions"]:
        return "waiting_clarification"
    return "waiting_approval" if row["open_approvals"] else lifecycle


def _counter(kind: str) -> str:
    return "open_approvals" if kind == "permission" else "open_questions"


def _closes(body: Message) -> bool:
    if isinstance(body, h.DecisionRecorded):
        return body.resolves
    if isinstance(body, h.HoldExpired):
        return body.on_timeout not in STAYS_OPEN
    return isinstance(body, h.HoldCancelled)


def _paused(body: x.ExecutionPaused, event: Event) -> Row:
    return {"lifecycle": "paused", "reason": body.reason}


def _resumed(body: x.ExecutionResumed, event: Event) -> Row:
    return {"lifecycle": "resumed", "reason": None}


def _completed(body: x.ExecutionCompleted, event: Event) -> Row:
    return {"lifecycle": "completed", "result": body.result, "ended_by": body.by}


def _failed(body: x.ExecutionFailed, event: Event) -> Row:
    return {"lifecycle": "failed", "error": body.error, "ended_by": body.by}


def _cancelled(body: x.ExecutionCancelled, event: Event) -> Row:
    return {"lifecycle": "cancelled", "reason": body.reason, "ended_by": body.by}


_CHANGES: dict[type[Message], Change] = {
    x.ExecutionPaused: _paused,
    x.ExecutionResumed: _resumed,
    x.ExecutionCompleted: _completed,
    x.ExecutionFailed: _failed,
    x.ExecutionCancelled: _cancelled,
}
