"""The execution: one run of an agent, and the state that it shows."""

from typing import Any

from projections.folds.events import effect_of
from projections.folds.rows import json_value, moment
from projections.folds.states import CLOSED
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.record import Event


def execution_resource(
    previous: ExecutionRow | None, event: Event, *, hold: HoldRow | None = None
) -> ExecutionRow | None:
    """The execution's row after an event.

    Args:
        previous: its row, or None before it started.
        event: any event of the execution.
        hold: the row, before the event, of the hold that the event names; needed where a hold closes.

    Returns:
        The row; None while the execution was not started (refusals may come first).
    """
    effect = effect_of(event.body)
    if previous is None:
        return None if effect.starts is None else effect.starts(event.body, event)
    row = previous.copy()
    row["version"] = event.meta.version
    row["updated_at_ms"] = event.meta.at_ms
    if row["lifecycle"] == "resumed":
        row["lifecycle"] = "running"
    if effect.execution is not None:
        effect.execution(row, event.body, hold)
        if row["lifecycle"] in CLOSED and row["ended_at_ms"] is None:
            row["ended_at_ms"] = event.meta.at_ms
    row["state"] = _state(row)
    return row


def execution_json(row: ExecutionRow) -> dict[str, Any]:
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


def _state(row: ExecutionRow) -> str:
    lifecycle = row["lifecycle"]
    if lifecycle in CLOSED or lifecycle == "paused":
        return lifecycle
    if row["open_questions"]:
        return "waiting_clarification"
    return "waiting_approval" if row["open_approvals"] else lifecycle
