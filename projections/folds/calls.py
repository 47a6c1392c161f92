"""The tool call: one row per call, at its newest revision."""

from typing import Any

from projections.folds.edits import edits_json
from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.resources import resource_of
from projections.folds.rows import json_value, moment
from projections.folds.states import TERMINAL
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.message import Message
from schemas.record import Event
from schemas.risk_score import are_weighed, score_of


def call_resource(
    previous: CallRow | None,
    event: Event,
    *,
    execution: ExecutionRow | None = None,
    turn: TurnRow | None = None,
) -> CallRow | None:
    """The call's row after an event.

    Args:
        previous: the row of the call that the event is about, or None before its first event.
        event: any event of the call's execution; one about another call or hold changes nothing.
        execution: the execution's row; needed if the call is proposed.
        turn: the row of the turn that the agent was answering; needed if the call is proposed.

    Returns:
        The row; None while there is no call.
    """
    effect = EFFECTS[type(event.body)]
    if previous is None:
        before = Before(execution, None, None, turn)
        return None if effect.proposes is None else effect.proposes(event.body, event, before)
    if effect.call is None or not _about(previous, event.body):
        return previous
    row = previous.copy()
    effect.call(row, event.body, event)
    row["updated_at_ms"] = event.meta.at_ms
    if previous["status"] not in TERMINAL:
        # What is said of a call afterwards does not move its end.
        row["ended_at_ms"] = event.meta.at_ms if row["status"] in TERMINAL else None
    return row


def call_json(row: CallRow) -> dict[str, Any]:
    """The tool call as REST and the sockets serve it, from its row."""
    return _RESOURCE(row)


def verdict_json(row: CallRow | HoldRow) -> dict[str, Any] | None:
    """The verdict in a call's or a hold's row, or None before the call was judged."""
    if row["effect"] is None:
        return None
    return {
        "effect": row["effect"],
        "rules": json_value(row["rules"]),
        "risk": risk_json(row),
        "risk_with_values": _risk_with_values(row),
        "trust": json_value(row["trust"]),
        "adaptive": json_value(row["adaptive"]),
        "history": json_value(row["history"]),
        "policy_version": row["policy_version"],
        "reason": row["verdict_reason"],
        "detail": row["verdict_detail"],
    }


def risk_json(row: CallRow | HoldRow) -> dict[str, Any] | None:
    """The risk in a call's or a hold's row, or None before the call was judged."""
    if row["risk_level"] is None:
        return None
    return {
        "score": row["risk_score"],
        "level": row["risk_level"],
        "parts": json_value(row["risk_parts"]),
        "required": row["risk_required"],
    }


def _risk_with_values(row: CallRow | HoldRow) -> dict[str, Any] | None:
    """The risk with what new and tainted values add, or None if they add nothing."""
    risk, history = risk_json(row), json_value(row["history"])
    added = (history or {}).get("parts")
    # A call that could not be judged has the highest risk, for a reason without a weight.
    if risk is None or not added or not are_weighed(parts := sorted((*risk["parts"], *added))):
        return None
    found = score_of(parts)
    return {"score": found.score, "level": found.level, "parts": parts, "required": found.required}


def decision_json(row: CallRow | HoldRow, at_ms: int | None) -> dict[str, Any] | None:
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


def planted_json(row: CallRow) -> dict[str, Any]:
    """A planted call for those who may know of it before people have answered."""
    return {
        "execution_id": row["execution_id"],
        "call_id": row["call_id"],
        "hold_id": row["hold_id"],
        "agent": row["agent"],
        "tool": row["tool"],
        "arguments": json_value(row["arguments"]),
        **_probe_json(row),
        "planted_at": moment(row["proposed_at_ms"]),
        "ended_at": moment(row["ended_at_ms"]),
    }


def _probe_json(row: CallRow) -> dict[str, Any]:
    planted = json_value(row["probe"])
    return {
        "planted_by": planted["by"],
        "note": planted["note"],
        "wrong": planted["wrong"],
        "result": row["probe_result"],
        "answers": json_value(row["probe_answers"]) or [],
    }


def _told_probe(row: CallRow) -> dict[str, Any] | None:
    """The same for everybody: None while people are asked, and for any other call."""
    return None if row["probe_result"] is None else _probe_json(row)


def _lease_seconds(row: CallRow) -> float | None:
    return None if row["lease_ms"] is None else row["lease_ms"] / 1000


def _grant_json(row: CallRow) -> dict[str, Any] | None:
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


def _about(row: CallRow, body: Message) -> bool:
    """Returns True if an event names the call or, if it names no call, the call's hold."""
    fields = body.__dict__
    if "call_id" in fields:
        return bool(row["call_id"] == fields["call_id"])
    return bool(row["hold_id"] == fields["hold_id"])


_RESOURCE = resource_of(
    TOOL_CALLS,
    "tenant",
    "project",
    "execution_id",
    "call_id",
    "revision",
    "agent",
    "tool",
    "tool_version",
    "arguments",
    "digest",
    "approved_arguments",
    ("edits", lambda row: edits_json(row["edits"])),
    "reason",
    "status",
    ("verdict", verdict_json),
    "hold_id",
    "deadline_at_ms",
    ("decision", lambda row: decision_json(row, row["decided_at_ms"])),
    ("grant", _grant_json),
    "denied_because",
    "feedback",
    "rollback",
    "attempt_id",
    "run_deadline_at_ms",
    "lease_until_ms",
    ("lease_seconds", _lease_seconds),
    "output",
    "error",
    "duration_ms",
    "impact_reports",
    ("probe", _told_probe),
    "proposed_at_ms",
    "updated_at_ms",
    "ended_at_ms",
)
