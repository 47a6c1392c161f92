"""The effects of events of a hold, and of the request that it can be; decisions have their own module."""

from typing import TypedDict

from projections.folds.acts import TIMER
from projections.folds.effects import Act, Before, Effect
from projections.folds.events.calls import forget_release
from projections.folds.rows import json_text, json_value, owner_of
from projections.folds.shown import show_opening
from projections.folds.verdicts import NO_VERDICT
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.authority import Asked, Delegation, delegations_from_text, delegations_to_text
from schemas.canonical import as_json
from schemas.display.versions import SHOW_MESSAGE
from schemas.events import holds as h
from schemas.record import Event
from schemas.requirement import escalated, requirements_from_text, requirements_to_text, widened


class _Undecided(TypedDict):
    decision: None
    decision_id: None
    decided_by: None
    feedback: None
    response: None


_UNDECIDED: _Undecided = {
    "decision": None,
    "decision_id": None,
    "decided_by": None,
    "feedback": None,
    "response": None,
}


def _blank(event: Event, hold_id: str, execution: ExecutionRow | None) -> HoldRow:
    return {
        **owner_of(event),
        "hold_id": hold_id,
        "request": None if execution is None else execution["request"],
        "call_id": None,
        "request_id": None,
        "revision": 0,
        "digest": "",
        "kind": "",
        "cause": "request",
        "status": "open",
        "agent": None if execution is None else execution["agent"],
        "tool": None,
        "tool_version": None,
        "arguments": None,
        "reason": None,
        **NO_VERDICT,
        "question": "",
        "options": "",
        "input_schema": "{}",
        "fields": "[]",
        "decision_type": "",
        "asks": None,
        "requester": "",
        "senders": None,
        "roles": "[]",
        "reviewers": "[]",
        "excluded": "[]",
        "quorum": 1,
        "exclude_requester": 0,
        "requirements": None,
        "votes": "[]",
        "claimed_by": None,
        "claimed_until_ms": None,
        "assignee": None,
        "escalated": 0,
        "opened_at_ms": event.meta.at_ms,
        "deadline_at_ms": None,
        "on_timeout": "wait",
        "default_value": None,
        "escalate_at_ms": None,
        "escalate_roles": "[]",
        "remind_at_ms": None,
        "on_reject": "feedback",
        **_UNDECIDED,
        "timed_out": 0,
        "updated_at_ms": event.meta.at_ms,
        "closed_at_ms": None,
        "view_digest": "",
        "badges": "[]",
        "opening": "{}",
        "view_version": 1,
        "must_read": 0,
        "proposed_arguments": None,
        "delegations": None,
        "trace": None,
    }


def _request(previous: HoldRow | None, body: h.HumanInputRequested, event: Event, before: Before) -> HoldRow:
    row = _blank(event, body.hold_id, before.execution)
    row.update(
        {
            "request_id": body.request_id,
            "kind": body.kind,
            "question": body.question,
            "options": body.options,
            "fields": body.fields,
            "decision_type": body.decision_type,
            "asks": h.asks_of(body),
            "requester": body.by,
            "senders": None if before.execution is None else before.execution["senders"],
        }
    )
    return row


def _open(previous: HoldRow | None, body: h.HoldOpened, event: Event, before: Before) -> HoldRow:
    call, execution = before.call, before.execution
    row = _blank(event, body.hold_id, execution) if previous is None else previous.copy()
    asker = None if previous is None or call is not None else previous["agent"]
    row["agent"] = None if execution is None else execution["agent"]
    if call is not None:
        _copy_call(row, call)
    if body.view_version in SHOW_MESSAGE:
        row["request"] = _message(call, before.turn)
    show_opening(row, body, call, asker, "" if execution is None else execution["request"])
    row.update(
        {
            "call_id": body.call_id or None,
            "request_id": body.request_id or None,
            "revision": body.revision,
            "digest": body.digest,
            "kind": body.kind,
            "cause": body.cause,
            "question": body.question,
            "options": body.options,
            "input_schema": body.input_schema,
            "requester": body.requester,
            "roles": json_text(body.roles),
            "reviewers": json_text(body.reviewers),
            "excluded": json_text(body.excluded),
            "quorum": body.quorum,
            "requirements": body.requirements,
            "exclude_requester": int(body.exclude_requester),
            "deadline_at_ms": body.deadline_at_ms,
            "on_timeout": body.on_timeout,
            "default_value": None if body.default_value is None else as_json(body.default_value),
            "escalate_at_ms": body.escalate_at_ms,
            "escalate_roles": json_text(body.escalate_roles),
            "remind_at_ms": body.remind_at_ms,
            "on_reject": body.on_reject,
            "trace": event.meta.trace or None,
        }
    )
    return row


def _message(call: CallRow | None, turn: TurnRow | None) -> str | None:
    """The message that the agent was answering; None if it is not known here, as only a cache of rows may have it."""
    if call is not None:
        return call["message"]
    return None if turn is None else turn["text"]


def _copy_call(row: HoldRow, call: CallRow) -> None:
    """Copy the fields of the held revision that a person sees: the call's row can go on to another revision."""
    row.update(
        {
            "agent": call["agent"],
            "tool": call["tool"],
            "tool_version": call["tool_version"],
            "arguments": call["arguments"],
            "reason": call["reason"],
            "senders": call["senders"],
            "effect": call["effect"],
            "rules": call["rules"],
            "policy_version": call["policy_version"],
            "verdict_reason": call["verdict_reason"],
            "verdict_detail": call["verdict_detail"],
            "risk_score": call["risk_score"],
            "risk_level": call["risk_level"],
            "risk_parts": call["risk_parts"],
            "risk_required": call["risk_required"],
            "trust": call["trust"],
            "adaptive": call["adaptive"],
            "history": call["history"],
        }
    )


def _hold_call(row: CallRow, body: h.HoldOpened, event: Event) -> None:
    row.update({"hold_id": body.hold_id, "deadline_at_ms": body.deadline_at_ms})
    if body.cause == "outcome_unknown":
        return
    row.update(
        {
            "status": "held",
            "decision": None,
            "decision_id": None,
            "decided_by": None,
            "decided_at_ms": None,
            "feedback": None,
        }
    )
    forget_release(row)


def _count_open(row: ExecutionRow, body: h.HoldOpened, hold: HoldRow | None) -> None:
    _add_open(row, body.kind, 1)


def count_closed(row: ExecutionRow, hold: HoldRow | None) -> None:
    """Decrease the number of open holds of an execution, if the hold was open."""
    if hold is not None and hold["status"] == "open":
        _add_open(row, hold["kind"], -1)


def _add_open(row: ExecutionRow, kind: str, number: int) -> None:
    if kind == "permission":
        row["open_approvals"] += number
    else:
        row["open_questions"] += number


def _claim(row: HoldRow, body: h.HoldClaimed, event: Event) -> None:
    row.update({"claimed_by": body.by, "claimed_until_ms": body.until_ms})


def _told_claim(body: h.HoldClaimed, before: Before) -> Act:
    return Act(body.by, "claim", before=_claimed_by(before.hold), after=json_text({"claimed_by": body.by}))


def _unclaim(row: HoldRow, body: h.HoldUnclaimed, event: Event) -> None:
    row.update({"claimed_by": None, "claimed_until_ms": None})


def _told_unclaiming(body: h.HoldUnclaimed, before: Before) -> Act:
    return Act(body.by, "unclaim", before=_claimed_by(before.hold), after=json_text({"claimed_by": None}))


def _claimed_by(hold: HoldRow | None) -> str | None:
    return None if hold is None else json_text({"claimed_by": hold["claimed_by"]})


def _delegate(row: HoldRow, body: h.HoldDelegated, event: Event) -> None:
    handed = Delegation(body.by, body.to, body.roles, body.person)
    row.update(
        {
            "assignee": body.to,
            "delegations": delegations_to_text((*delegations_from_text(row["delegations"]), handed)),
            "claimed_by": None,
            "claimed_until_ms": None,
        }
    )


def _told_delegation(body: h.HoldDelegated, before: Before) -> Act:
    hold = before.hold
    was = None if hold is None else json_text({"assignee": hold["assignee"]})
    return Act(body.by, "delegate", before=was, after=json_text({"assignee": body.to}))


def _extend(row: HoldRow, body: h.HoldExtended, event: Event) -> None:
    row["deadline_at_ms"] = body.deadline_at_ms


def _move_deadline(row: CallRow, body: h.DeadlineMoved, event: Event) -> None:
    row["deadline_at_ms"] = body.deadline_at_ms


def _told_extension(body: h.HoldExtended, before: Before) -> Act:
    hold = before.hold
    was = None if hold is None else json_text({"deadline_at_ms": hold["deadline_at_ms"]})
    return Act(body.by, "extend", before=was, after=json_text({"deadline_at_ms": body.deadline_at_ms}))


def _escalate(row: HoldRow, body: h.HoldEscalated, event: Event) -> None:
    # Escalation adds people and never removes any; a hold escalates once (services.domain.execution.holds).
    asked = Asked(tuple(json_value(row["roles"])), tuple(json_value(row["reviewers"])))
    row.update(
        {
            "escalated": 1,
            "roles": json_text(widened(asked, body.roles)),
            "requirements": requirements_to_text(escalated(requirements_from_text(row["requirements"]))),
            "deadline_at_ms": body.deadline_at_ms,
            "escalate_at_ms": None,
            "on_timeout": "deny" if row["on_timeout"] == "escalate" else row["on_timeout"],
        }
    )


def _told_escalation(body: h.HoldEscalated, before: Before) -> Act:
    roles = None if before.hold is None else before.hold["roles"]
    return Act(body.by or TIMER, "escalate", before=roles, after=json_text(body.roles))


def _remind(row: HoldRow, body: h.HoldReminded, event: Event) -> None:
    row["remind_at_ms"] = None


def _told_reminder(body: h.HoldReminded, before: Before) -> Act:
    return Act(TIMER, "remind")


def _expire(row: HoldRow, body: h.HoldExpired, event: Event) -> None:
    row.update({"status": "expired", "timed_out": 1, "closed_at_ms": event.meta.at_ms})


def _told_expiry(body: h.HoldExpired, before: Before) -> Act:
    return Act(TIMER, "expire", after=json_text({"on_timeout": body.on_timeout}))


def _cancel(row: HoldRow, body: h.HoldCancelled, event: Event) -> None:
    row.update({"status": "cancelled", "feedback": body.reason, "closed_at_ms": event.meta.at_ms})


def _count_ended(row: ExecutionRow, body: h.HoldExpired | h.HoldCancelled, hold: HoldRow | None) -> None:
    count_closed(row, hold)


def _answer(row: HoldRow, body: h.HumanInputProvided, event: Event) -> None:
    row.update({"response": body.response, "timed_out": int(body.timed_out), "decided_by": body.by})


def _told_default(body: h.HumanInputProvided, before: Before) -> Act | None:
    # If a question has no default, the null that its agent gets is not a person's answer: `expire` says the rest.
    if not body.timed_out or (before.hold is not None and before.hold["on_timeout"] != "default"):
        return None
    return Act(body.by or TIMER, "default", after=body.response)


EFFECTS = (
    Effect(h.HumanInputRequested, opens=_request),
    Effect(h.HoldOpened, execution=_count_open, call=_hold_call, opens=_open),
    Effect(h.HoldClaimed, hold=_claim, audit=_told_claim),
    Effect(h.HoldUnclaimed, hold=_unclaim, audit=_told_unclaiming),
    Effect(h.HoldDelegated, hold=_delegate, audit=_told_delegation),
    Effect(h.HoldExtended, call=_move_deadline, hold=_extend, audit=_told_extension),
    Effect(h.HoldEscalated, call=_move_deadline, hold=_escalate, audit=_told_escalation),
    Effect(h.HoldReminded, hold=_remind, audit=_told_reminder),
    Effect(h.HoldExpired, execution=_count_ended, hold=_expire, audit=_told_expiry),
    Effect(h.HoldCancelled, execution=_count_ended, hold=_cancel),
    Effect(h.HumanInputProvided, hold=_answer, audit=_told_default),
)
