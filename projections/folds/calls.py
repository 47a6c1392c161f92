"""The tool call: one row a call, at its newest revision."""

from typing import Any

from projections.folds.edits import with_edit
from projections.folds.rows import Change, Row, json_text, json_value, moment, owner_of
from projections.folds.shown import proposed_arguments
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from schemas.record import Event

TERMINAL = frozenset({"denied", "cancelled", "expired", "revoked", "succeeded", "failed"})

# A hold's fields that a call shows as its own are gone once it waits no longer.
_NOT_WAITING: Row = {"deadline_at_ms": None}
# What a release gave is void once the call is held again or denied before an attempt has it.
_NOT_RELEASED: Row = {
    "approved_arguments": None,
    "grant_id": None,
    "grant_decision_id": None,
    "grant_digest": None,
    "grant_expires_at_ms": None,
    "released_by": None,
    "rule_id": None,
}
_NOT_RUNNING: Row = {"run_deadline_at_ms": None, "lease_ms": None, "lease_until_ms": None}


def call_resource(previous: Row | None, event: Event) -> Row | None:
    """The call's row after an event.

    Args:
        previous: the row of the call that the event is about, or None before its first event.
        event: any event of the call's execution; one about another call or hold changes nothing.

    Returns:
        The row; None while there is none.
    """
    body: Any = event.body
    change = _CHANGES.get(type(body))
    if change is None:
        return previous
    if previous is None:
        return _first(body, event) if isinstance(body, c.ToolCallProposed) else None
    if not _about(previous, body):
        return previous
    row = previous | change(body, event)
    if isinstance(body, c.ToolCallProposed):
        row["proposed_arguments"] = proposed_arguments(previous, body.arguments)
    if isinstance(body, h.DecisionRecorded):
        row["edits"] = with_edit(previous, body, event.meta.at_ms)
    row["updated_at_ms"] = event.meta.at_ms
    row["ended_at_ms"] = event.meta.at_ms if row["status"] in TERMINAL else None
    return row


def call_json(row: Row) -> dict[str, Any]:
    """The tool call as REST and the sockets serve it, from its row."""
    return {
        "tenant": row["tenant"],
        "project": row["project"],
        "execution_id": row["execution_id"],
        "call_id": row["call_id"],
        "revision": row["revision"],
        "agent": row["agent"],
        "tool": row["tool"],
        "tool_version": row["tool_version"],
        "arguments": json_value(row["arguments"]),
        "digest": row["digest"],
        "approved_arguments": json_value(row["approved_arguments"]),
        "edits": json_value(row["edits"]) or [],
        "reason": row["reason"],
        "status": row["status"],
        "verdict": verdict_json(row),
        "hold_id": row["hold_id"],
        "deadline_at": moment(row["deadline_at_ms"]),
        "decision": decision_json(row, row["decided_at_ms"]),
        "grant": _grant_json(row),
        "denied_because": row["denied_because"],
        "feedback": row["feedback"],
        "rollback": json_value(row["rollback"]),
        "attempt_id": row["attempt_id"],
        "run_deadline_at": moment(row["run_deadline_at_ms"]),
        "lease_until": moment(row["lease_until_ms"]),
        "lease_seconds": None if row["lease_ms"] is None else row["lease_ms"] / 1000,
        "output": json_value(row["output"]),
        "error": row["error"],
        "duration_ms": row["duration_ms"],
        "proposed_at": moment(row["proposed_at_ms"]),
        "updated_at": moment(row["updated_at_ms"]),
        "ended_at": moment(row["ended_at_ms"]),
    }


def verdict_json(row: Row) -> dict[str, Any] | None:
    """The verdict in a call's or a hold's row, or None before it was judged."""
    if row["effect"] is None:
        return None
    return {
        "effect": row["effect"],
        "rules": json_value(row["rules"]),
        "risk": risk_json(row),
        "trust": json_value(row["trust"]),
        "policy_version": row["policy_version"],
        "reason": row["verdict_reason"],
        "detail": row["verdict_detail"],
    }


def risk_json(row: Row) -> dict[str, Any] | None:
    """The risk in a call's or a hold's row, or None before it was judged."""
    if row["risk_level"] is None:
        return None
    return {
        "score": row["risk_score"],
        "level": row["risk_level"],
        "parts": json_value(row["risk_parts"]),
        "required": row["risk_required"],
    }


def decision_json(row: Row, at_ms: int | None) -> dict[str, Any] | None:
    """The decision in a call's or a hold's row, or None before there was one; `at_ms` is when it was taken."""
    if row["decision"] is None:
        return None
    return {
        "decision_id": row["decision_id"],
        "decision": row["decision"],
        "by": row["decided_by"],
        "at": moment(at_ms),
        "feedback": row["feedback"],
    }


def _grant_json(row: Row) -> dict[str, Any] | None:
    if row["grant_id"] is None:
        return None
    return {
        "grant_id": row["grant_id"],
        "decision_id": row["grant_decision_id"],
        "released_by": row["released_by"],
        "rule_id": row["rule_id"],
        "digest": row["grant_digest"],
        "expires_at": moment(row["grant_expires_at_ms"]),
        "token": None,
    }


def _about(row: Row, body: Any) -> bool:
    if type(body) in _BY_HOLD:
        return bool(row["hold_id"] == body.hold_id)
    return bool(row["call_id"] == body.call_id)


def _first(body: c.ToolCallProposed, event: Event) -> Row:
    return {
        **owner_of(event),
        "call_id": body.call_id,
        "proposed_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "ended_at_ms": None,
        "hold_id": None,
        "decision": None,
        "decision_id": None,
        "decided_by": None,
        "decided_at_ms": None,
        "feedback": None,
        "released_by": None,
        "rule_id": None,
        "output": None,
        "error": None,
        "duration_ms": None,
        "proposed_arguments": None,
        "edits": None,
        **_proposed(body, event),
    }


def _proposed(body: c.ToolCallProposed, event: Event) -> Row:
    """A new revision: its verdict, grant and attempt are still to come; the edit's decision stays shown."""
    return {
        "revision": body.revision,
        "agent": body.agent,
        "tool": body.tool,
        "tool_version": body.tool_version,
        "arguments": body.arguments,
        "digest": body.digest,
        "context": body.context,
        "claims": body.claims,
        "reason": body.reason,
        "proposed_by": body.by,
        "status": "proposed",
        "approved_arguments": None,
        "effect": None,
        "rules": None,
        "policy_version": None,
        "verdict_reason": None,
        "verdict_detail": None,
        "risk_score": None,
        "risk_level": None,
        "risk_parts": None,
        "risk_required": None,
        "trust": None,
        "deadline_at_ms": None,
        "grant_id": None,
        "grant_decision_id": None,
        "grant_digest": None,
        "grant_expires_at_ms": None,
        "denied_because": None,
        "rollback": None,
        "attempt_id": None,
        **_NOT_RUNNING,
    }


def _judged(body: c.PolicyVerdictIssued, event: Event) -> Row:
    return {
        "effect": body.effect,
        "rules": json_text(body.rules),
        "policy_version": body.policy_version,
        "verdict_reason": body.reason,
        "verdict_detail": body.detail,
        "risk_score": body.risk_score,
        "risk_level": body.risk_level,
        "risk_parts": json_text(body.risk_parts),
        "risk_required": body.risk_required,
        "trust": body.trust,
    }


def _held(body: h.HoldOpened, event: Event) -> Row:
    waiting = {"hold_id": body.hold_id, "deadline_at_ms": body.deadline_at_ms}
    if body.cause == "outcome_unknown":
        return waiting
    return waiting | {
        "status": "held",
        "decision": None,
        "decision_id": None,
        "decided_by": None,
        "decided_at_ms": None,
        "feedback": None,
        **_NOT_RELEASED,
    }


def _moved(body: h.HoldExtended | h.HoldEscalated, event: Event) -> Row:
    return {"deadline_at_ms": body.deadline_at_ms}


def _decided(body: h.DecisionRecorded, event: Event) -> Row:
    if not body.resolves:
        return {}
    return _NOT_WAITING | {
        "decision": body.decision,
        "decision_id": body.decision_id,
        "decided_by": body.by,
        "decided_at_ms": event.meta.at_ms,
        "feedback": body.feedback,
    }


def _released(body: c.ToolCallReleased, event: Event) -> Row:
    return _NOT_WAITING | {
        "status": "released",
        "approved_arguments": body.arguments,
        "released_by": body.released_by,
        "rule_id": body.rule_id or None,
        "grant_id": body.grant_id,
        "grant_decision_id": body.decision_id,
        "grant_digest": body.digest,
        "grant_expires_at_ms": body.expires_at_ms,
        "attempt_id": None,
        **_NOT_RUNNING,
    }


def _denied(body: c.ToolCallDenied, event: Event) -> Row:
    return _NOT_WAITING | {
        "status": "expired" if body.cause == "timeout" else "denied",
        "denied_because": body.cause,
        "feedback": body.feedback,
        **_NOT_RELEASED,
    }


def _rolled_back(body: h.RollbackStarted, event: Event) -> Row:
    return {"rollback": json_text(body.calls)}


def _cancelled(body: c.ToolCallCancelled, event: Event) -> Row:
    return _NOT_WAITING | {"status": "cancelled", "error": body.reason}


def _consumed(body: c.GrantConsumed, event: Event) -> Row:
    return {
        "status": "consumed",
        "attempt_id": body.attempt_id,
        "run_deadline_at_ms": body.run_deadline_at_ms,
        "lease_ms": body.lease_ms,
        "lease_until_ms": None if body.lease_ms is None else event.meta.at_ms + body.lease_ms,
    }


def _renewed(body: c.LeaseRenewed, event: Event) -> Row:
    return {"lease_until_ms": body.lease_until_ms}


def _revoked(body: c.GrantRevoked, event: Event) -> Row:
    return {"status": "expired" if body.reason == "expired" else "revoked", "error": body.reason}


def _succeeded(body: c.ToolCallSucceeded, event: Event) -> Row:
    return _NOT_WAITING | {
        "status": "succeeded",
        "output": body.output,
        "error": None,
        "duration_ms": body.duration_ms,
    }


def _failed(body: c.ToolCallFailed, event: Event) -> Row:
    return _NOT_WAITING | {"status": "failed", "error": body.error, "duration_ms": body.duration_ms}


def _unknown(body: c.ToolCallOutcomeUnknown, event: Event) -> Row:
    return {"status": "outcome_unknown", "error": body.reason}


_BY_HOLD: frozenset[type[Message]] = frozenset({h.HoldExtended, h.HoldEscalated})

_CHANGES: dict[type[Message], Change] = {
    c.ToolCallProposed: _proposed,
    c.PolicyVerdictIssued: _judged,
    c.ToolCallReleased: _released,
    c.ToolCallDenied: _denied,
    c.ToolCallCancelled: _cancelled,
    c.GrantConsumed: _consumed,
    c.LeaseRenewed: _renewed,
    c.GrantRevoked: _revoked,
    c.ToolCallSucceeded: _succeeded,
    c.ToolCallFailed: _failed,
    c.ToolCallOutcomeUnknown: _unknown,
    h.HoldOpened: _held,
    h.HoldExtended: _moved,
    h.HoldEscalated: _moved,
    h.DecisionRecorded: _decided,
    h.RollbackStarted: _rolled_back,
}
