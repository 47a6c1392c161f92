"""The hold: one pause for a person, with what the person saw. A request is a hold with a `request_id`."""

from typing import Any

from projections.folds.calls import decision_json, risk_json, verdict_json
from projections.folds.effects import Before
from projections.folds.events import effect_of
from projections.folds.rows import json_value, moment
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.record import Event
from schemas.requirement import requirements_from_text


def hold_resource(
    previous: HoldRow | None,
    event: Event,
    *,
    call: CallRow | None = None,
    execution: ExecutionRow | None = None,
) -> HoldRow | None:
    """The hold's row after an event.

    Args:
        previous: the row of the hold that the event is about, or None before its first event.
        event: any event of the hold's execution; one about another hold changes nothing.
        call: the held call's row before the event; needed where a call's hold opens.
        execution: the execution's row; needed where a hold opens.

    Returns:
        The row; None while there is none.
    """
    body = event.body
    effect = effect_of(body)
    if effect.opens is not None:
        return effect.opens(previous, body, event, Before(execution, call, previous))
    if effect.hold is None or previous is None or previous["hold_id"] != body.__dict__["hold_id"]:
        return previous
    row = previous.copy()
    effect.hold(row, body, event)
    row["updated_at_ms"] = event.meta.at_ms
    return row


def hold_json(row: HoldRow) -> dict[str, Any]:
    """The hold as REST and the sockets serve it, from its row."""
    return {
        "tenant": row["tenant"],
        "project": row["project"],
        "hold_id": row["hold_id"],
        "execution_id": row["execution_id"],
        "request": row["request"],
        "call_id": row["call_id"],
        "request_id": row["request_id"],
        "revision": row["revision"],
        "kind": row["kind"],
        "cause": row["cause"],
        "status": row["status"],
        "agent": row["agent"],
        "tool": row["tool"],
        "tool_version": row["tool_version"],
        "arguments": json_value(row["arguments"]),
        "digest": row["digest"],
        "reason": row["reason"],
        "question": row["question"],
        "options": json_value(row["options"]),
        "input_schema": json_value(row["input_schema"]),
        "fields": json_value(row["fields"]),
        "decision_type": row["decision_type"],
        "risk": risk_json(row),
        "trust": json_value(row["trust"]),
        "verdict": verdict_json(row),
        "requester": row["requester"],
        "roles": json_value(row["roles"]),
        "reviewers": json_value(row["reviewers"]),
        "excluded": json_value(row["excluded"]),
        "quorum": row["quorum"],
        "requirements": requirements_json(row["requirements"]),
        "exclude_requester": bool(row["exclude_requester"]),
        "votes": _votes_json(row),
        "claimed_by": row["claimed_by"],
        "claimed_until": moment(row["claimed_until_ms"]),
        "assignee": row["assignee"],
        "escalated": bool(row["escalated"]),
        "opened_at": moment(row["opened_at_ms"]),
        "deadline_at": moment(row["deadline_at_ms"]),
        "escalate_at": moment(row["escalate_at_ms"]),
        "on_timeout": row["on_timeout"],
        "on_reject": row["on_reject"],
        "default": json_value(row["default_value"]),
        "decision": decision_json(row, row["closed_at_ms"]),
        "response": json_value(row["response"]),
        "timed_out": bool(row["timed_out"]),
        "updated_at": moment(row["updated_at_ms"]),
        "closed_at": moment(row["closed_at_ms"]),
        "view_digest": told_view_digest(row),
        "view_version": row["view_version"] if row["view_digest"] else None,
        "must_read": bool(row["must_read"]),
        "badges": json_value(row["badges"]),
    }


def requirements_json(text: str | None) -> list[dict[str, Any]]:
    """What each of several rules asks for, from their text in a fact or a row."""
    return [
        {"rules": one.rules, "roles": one.roles, "reviewers": one.reviewers, "quorum": one.quorum}
        for one in requirements_from_text(text)
    ]


def told_view_digest(row: HoldRow) -> str | None:
    """The digest of a hold's view, for whoever was not sent the view.

    None where the view must be read: who decides such a hold names the digest, and has it with the view alone.
    """
    return None if row["must_read"] else row["view_digest"] or None


def without_view_digest(data: dict[str, Any]) -> dict[str, Any]:
    """An event's fields as they are served: without the digest of a view (`told_view_digest`).

    An event does not say whether its hold must be read; so none tells the digest.
    """
    return {**data, "view_digest": ""} if data.get("view_digest") else data


def votes_of(row: HoldRow) -> list[dict[str, Any]]:
    """The votes on a hold; a row of before says nothing of what was to be remembered."""
    return [{"scope": "once", "remember": None} | vote for vote in json_value(row["votes"])]


def _votes_json(row: HoldRow) -> Any:
    votes = votes_of(row)
    return [{**vote, "view_digest": None} for vote in votes] if row["must_read"] else votes


def request_json(row: HoldRow) -> dict[str, Any]:
    """The request of the outward interface, from the row of the hold that it is."""
    return {
        "request_id": row["request_id"],
        "hold_id": row["hold_id"],
        "execution_id": row["execution_id"],
        "kind": row["kind"],
        "question": row["question"],
        "options": json_value(row["options"]),
        "fields": json_value(row["fields"]),
        "decision_type": row["decision_type"],
        "status": row["status"],
        "response": json_value(row["response"]),
        "timed_out": bool(row["timed_out"]),
        "by": row["decided_by"],
        "decision": row["decision"],
        "feedback": row["feedback"],
        "deadline_at": moment(row["deadline_at_ms"]),
    }
