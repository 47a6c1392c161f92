"""The effects of people's decisions on a hold and of what follows: rollbacks, and secrets delivered or erased."""

from collections.abc import Iterator
from typing import Any

from projections.folds.acts import ERASE
from projections.folds.analytics import (
    edits_of,
    evidence_rows,
    is_about_running,
    refused_vote_of,
    vote_of,
    word_on_call,
)
from projections.folds.edits import with_edit
from projections.folds.effects import Act, Before, Effect, New
from projections.folds.events.holds import count_closed
from projections.folds.rows import json_text, json_value, moment
from projections.folds.star import edit_patch_rows
from projections.tables.agents import Counter
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.commands import Decision
from schemas.events import holds as h
from schemas.record import Event

_COUNTERS: dict[Decision, Counter] = {"approve": "approved", "edit": "edited", "reject": "rejected"}
# An answer instead of a run means that the call does not happen (docs/trust.md).
_EVIDENCE: dict[Decision, str] = {
    "approve": "approval",
    "edit": "edit",
    "reject": "rejection",
    "respond": "rejection",
}


def _decide(row: HoldRow, body: h.DecisionRecorded, event: Event) -> None:
    vote = {
        "decision_id": body.decision_id,
        "decision": body.decision,
        "by": body.by,
        "person": body.person or None,
        "roles": body.roles,
        "digest": body.digest,
        "at": moment(event.meta.at_ms),
        "feedback": body.feedback,
        "view_digest": body.view_digest or None,
        "dwell_ms": body.dwell_ms,
        "scope": body.scope,
        "remember": _remember_json(body),
    }
    row["votes"] = json_text([*json_value(row["votes"]), vote])
    if body.resolves:
        row.update(
            {
                "status": "resolved",
                "decision": body.decision,
                "decision_id": body.decision_id,
                "decided_by": body.by,
                "feedback": body.feedback,
                "closed_at_ms": event.meta.at_ms,
            }
        )


def _remember_json(body: h.DecisionRecorded) -> Any:
    """What a vote asks to be remembered; if the run remembers it from now on, only its tests of the arguments."""
    if body.remember is None:
        return None
    asked = json_value(body.remember)
    return {"arguments": asked["arguments"]} if body.scope == "execution" and body.resolves else asked


def _decide_call(row: CallRow, body: h.DecisionRecorded, event: Event) -> None:
    row["edits"] = with_edit(row, body, event.meta.at_ms)
    if body.resolves:
        row.update(
            {
                "deadline_at_ms": None,
                "decision": body.decision,
                "decision_id": body.decision_id,
                "decided_by": body.by,
                "decided_at_ms": event.meta.at_ms,
                "feedback": body.feedback,
            }
        )


def _count_resolved(row: ExecutionRow, body: h.DecisionRecorded, hold: HoldRow | None) -> None:
    if body.resolves:
        count_closed(row, hold)


def _told_decision(body: h.DecisionRecorded, before: Before) -> Act:
    arguments = None if before.hold is None else before.hold["arguments"]
    after = {"approve": arguments, "edit": body.edited_arguments, "respond": body.value}.get(body.decision)
    return Act(
        body.by,
        body.decision,
        before=arguments,
        after=after,
        feedback=body.feedback,
        digest=body.digest,
        view_digest=body.view_digest or None,
        dwell_ms=body.dwell_ms,
    )


def _decision_rows(body: h.DecisionRecorded, event: Event, before: Before) -> Iterator[New]:
    yield vote_of(body, event, before.hold)
    yield from edits_of(body, event, before.call)
    yield from edit_patch_rows(body, event, before.call)
    if before.call is not None and is_about_running(body, before.call):
        fact = word_on_call(body, before.call, before.hold)
        yield from evidence_rows(event, before.call, _EVIDENCE[body.decision], fact)


def _count_decision(body: h.DecisionRecorded, call: CallRow) -> tuple[Counter, ...]:
    decision = _COUNTERS.get(body.decision) if is_about_running(body, call) else None
    return ("votes", decision) if decision else ("votes",)


def _told_refusal(body: h.DecisionRefused, before: Before) -> Act:
    after = {"code": str(body.code), "winning_decision_id": body.winning_decision_id or None}
    return Act(
        body.by,
        f"{body.decision}_refused",
        after=json_text(after),
        feedback=body.detail,
        digest=body.digest,
        hold_id=body.hold_id,
    )


def _refusal_rows(body: h.DecisionRefused, event: Event, before: Before) -> Iterator[New]:
    yield refused_vote_of(body, event, before.hold)


def _roll_back(row: CallRow, body: h.RollbackStarted, event: Event) -> None:
    row["rollback"] = json_text(body.calls)


def _told_rollback(body: h.RollbackStarted, before: Before) -> Act:
    return Act(body.by, "rollback", after=json_text(body.calls))


def _told_taking(body: h.SecretsDelivered, before: Before) -> Act:
    after = {"request_id": body.request_id, "attempt_id": body.attempt_id}
    return Act(body.by, "take_secrets", after=json_text(after))


def _told_erasure(body: h.SecretsErased, before: Before) -> Act:
    after = {"call_id": body.call_id or None, "request_id": body.request_id or None}
    return Act(body.by, ERASE, after=json_text(after), feedback=body.reason)


EFFECTS = (
    Effect(
        h.DecisionRecorded,
        execution=_count_resolved,
        call=_decide_call,
        hold=_decide,
        audit=_told_decision,
        rows=_decision_rows,
        counts=_count_decision,
    ),
    Effect(h.DecisionRefused, audit=_told_refusal, rows=_refusal_rows, is_refusal=True),
    Effect(h.RollbackStarted, call=_roll_back, audit=_told_rollback),
    Effect(h.SecretsDelivered, audit=_told_taking),
    Effect(h.SecretsErased, audit=_told_erasure),
)
