"""The effects of events of an execution as a whole, and of commands that were refused or given up."""

from projections.folds.acts import TIMER, snake
from projections.folds.effects import Act, Before, Effect
from projections.folds.rows import json_text, owner_of
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.events import executions as x
from schemas.record import Event


def _start(body: x.ExecutionStarted, event: Event) -> ExecutionRow:
    return {
        **owner_of(event),
        "agent": body.agent,
        "user_id": body.user,
        "workspace": body.workspace,
        "request": body.request,
        "senders": None,
        "turn_id": None,
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
        "planted": int(body.probe is not None),
        "ended_by": None,
        "started_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "ended_at_ms": None,
        "log_partition": event.partition,
    }


def _pause(row: ExecutionRow, body: x.ExecutionPaused, hold: HoldRow | None) -> None:
    row.update({"lifecycle": "paused", "reason": body.reason})


def _told_pause(body: x.ExecutionPaused, before: Before) -> Act:
    return _steered(body.by, "pause", before.execution, "paused", body.reason)


def _resume(row: ExecutionRow, body: x.ExecutionResumed, hold: HoldRow | None) -> None:
    row.update({"lifecycle": "resumed", "reason": None})


def _told_resume(body: x.ExecutionResumed, before: Before) -> Act:
    return _steered(body.by, "resume", before.execution, "resumed", body.feedback)


def _complete(row: ExecutionRow, body: x.ExecutionCompleted, hold: HoldRow | None) -> None:
    row.update({"lifecycle": "completed", "result": body.result, "ended_by": body.by})


def _fail(row: ExecutionRow, body: x.ExecutionFailed, hold: HoldRow | None) -> None:
    row.update({"lifecycle": "failed", "error": body.error, "ended_by": body.by})


def _cancel(row: ExecutionRow, body: x.ExecutionCancelled, hold: HoldRow | None) -> None:
    row.update({"lifecycle": "cancelled", "reason": body.reason, "ended_by": body.by})


def _told_cancellation(body: x.ExecutionCancelled, before: Before) -> Act:
    return _steered(body.by, "cancel", before.execution, "cancelled", body.reason)


def _steered(by: str, action: str, execution: ExecutionRow | None, state: str, feedback: str) -> Act:
    before = None if execution is None else json_text({"state": execution["state"]})
    return Act(by, action, before=before, after=json_text({"state": state}), feedback=feedback)


def told_refusal(body: x.CommandRefused, before: Before | None = None) -> Act:
    """The act of a refused command: one of an execution, or about a definition."""
    after = json_text({"code": str(body.code), "subject_id": body.subject_id or None})
    return Act(body.by, f"{snake(body.command)}_refused", after=after, feedback=body.detail)


def told_giving_up(body: x.CommandAbandoned, before: Before | None = None) -> Act:
    """The act of giving up a command: one of an execution, or about a definition."""
    after = json_text({"command_offset": body.command_offset, "attempts": body.attempts})
    return Act(TIMER, f"{snake(body.command)}_abandoned", after=after)


EFFECTS = (
    Effect(x.ExecutionStarted, starts=_start),
    Effect(x.ExecutionPaused, execution=_pause, audit=_told_pause),
    Effect(x.ExecutionResumed, execution=_resume, audit=_told_resume),
    Effect(x.ExecutionCompleted, execution=_complete),
    Effect(x.ExecutionFailed, execution=_fail),
    Effect(x.ExecutionCancelled, execution=_cancel, audit=_told_cancellation),
    Effect(x.CommandRefused, audit=told_refusal, is_refusal=True),
    Effect(x.CommandAbandoned, audit=told_giving_up),
)
