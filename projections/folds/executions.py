"""The execution: one run of an agent, and its state."""

from typing import Any

from projections.folds.events import EFFECTS
from projections.folds.resources import resource_of
from projections.folds.states import CLOSED
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HoldRow
from schemas.record import Event


def execution_resource(
    previous: ExecutionRow | None, event: Event, *, hold: HoldRow | None = None
) -> ExecutionRow | None:
    """The execution's row after an event.

    Args:
        previous: its row, or None before it started.
        event: any event of the execution.
        hold: the row, before the event, of the hold that the event names; needed if a hold closes.

    Returns:
        The row; None while the execution has not started (refusals can come first).
    """
    effect = EFFECTS[type(event.body)]
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
    return _RESOURCE(row)


def _state(row: ExecutionRow) -> str:
    lifecycle = row["lifecycle"]
    if lifecycle in CLOSED or lifecycle == "paused":
        return lifecycle
    if row["open_questions"]:
        return "waiting_clarification"
    return "waiting_approval" if row["open_approvals"] else lifecycle


_RESOURCE = resource_of(
    EXECUTIONS,
    "tenant",
    "project",
    "execution_id",
    "state",
    "agent",
    ("user", "user_id"),
    "workspace",
    "request",
    "context",
    "version",
    "calls",
    ("open_holds", lambda row: row["open_approvals"] + row["open_questions"]),
    "result",
    "error",
    "reason",
    "started_by",
    "ended_by",
    "started_at_ms",
    "updated_at_ms",
    "ended_at_ms",
)
