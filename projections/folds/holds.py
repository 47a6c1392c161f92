"""The hold: one pause for a person, with what the person saw. A request is a hold with a `request_id`."""

from collections.abc import Callable
from typing import Any

from projections.folds.calls import decision_json, risk_json, verdict_json
from projections.folds.rows import Row, json_text, json_value, moment, owner_of
from projections.folds.shown import NOT_OPENED, shown_at_opening
from schemas.authority import Asked, Delegation, delegations_from_text, delegations_to_text
from schemas.canonical import as_json
from schemas.events import holds as h
from schemas.message import Message
from schemas.record import Event
from schemas.requirement import escalated, requirements_from_text, requirements_to_text

STAYS_OPEN = frozenset({"escalate", "wait"})

# What a person sees of the held revision: copied from the call, whose row may move on to another revision.
SHOWN_OF_CALL = (
    "agent",
    "tool",
    "tool_version",
    "arguments",
    "reason",
    "effect",
    "rules",
    "policy_version",
    "verdict_reason",
    "verdict_detail",
    "risk_score",
    "risk_level",
    "risk_parts",
    "risk_required",
    "trust",
)
_NO_CALL: Row = dict.fromkeys(SHOWN_OF_CALL) | NOT_OPENED


def hold_resource(
    previous: Row | None, event: Event, *, call: Row | None = None, execution: Row | None = None
) -> Row | None:
    """The hold's row after an event.

    Args:
        previous: the row of the hold that the event is about, or None before its first event.
        event: any event of the hold's execution; one about another hold changes nothing.
        call: the held call's row before the event; needed where a call's hold opens.
        execution: the execution's row; needed where a hold opens.

    Returns:
        The row; None while there is none.
    """
    body: Any = event.body
    if isinstance(body, h.HumanInputRequested):
        return _requested(body, event, execution)
    if isinstance(body, h.HoldOpened):
        return _opened(previous, body, event, call, execution)
    change = _CHANGES.get(type(body))
    if change is None or previous is None or previous["hold_id"] != body.hold_id:
        return previous
    row = previous | change(previous, body, event)
    row["updated_at_ms"] = event.meta.at_ms
    return row


def hold_json(row: Row) -> dict[str, Any]:
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


def told_view_digest(row: Row) -> str | None:
    """The digest of a hold's view, for whoever was not sent the view.

    None where the view must be read: who decides such a hold names the digest, and has it with the view alone.
    """
    return None if row["must_read"] else row["view_digest"] or None


def without_view_digest(data: dict[str, Any]) -> dict[str, Any]:
    """An event's fields as they are served: without the digest of a view (`told_view_digest`).

    An event does not say whether its hold must be read; so none tells the digest.
    """
    return {**data, "view_digest": ""} if data.get("view_digest") else data


def votes_of(row: Row) -> list[dict[str, Any]]:
    """The votes on a hold; a row of before says nothing of what was to be remembered."""
    return [{"scope": "once", "remember": None} | vote for vote in json_value(row["votes"])]


def _votes_json(row: Row) -> Any:
    votes = votes_of(row)
    return [{**vote, "view_digest": None} for vote in votes] if row["must_read"] else votes


def _remember_json(body: h.DecisionRecorded) -> Any:
    """What a vote asks to be remembered; of what a run remembers since, its tests of the arguments."""
    if body.remember is None:
        return None
    asked = json_value(body.remember)
    return {"arguments": asked["arguments"]} if body.scope == "execution" and body.resolves else asked


def request_json(row: Row) -> dict[str, Any]:
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


def _blank(event: Event, hold_id: str, execution: Row | None) -> Row:
    return {
        **owner_of(event),
        "hold_id": hold_id,
        "request": None if execution is None else execution["request"],
        "call_id": None,
        "request_id": None,
        "revision": 0,
        "digest": "",
        "cause": "request",
        "input_schema": "{}",
        "fields": "[]",
        "decision_type": "",
        "requester": "",
        "roles": "[]",
        "reviewers": "[]",
        "excluded": "[]",
        "quorum": 1,
        "requirements": None,
        "exclude_requester": 0,
        "deadline_at_ms": None,
        "on_timeout": "wait",
        "default_value": None,
        "escalate_at_ms": None,
        "escalate_roles": "[]",
        "on_reject": "feedback",
        "status": "open",
        "claimed_by": None,
        "claimed_until_ms": None,
        "assignee": None,
        "delegations": None,
        "escalated": 0,
        "votes": "[]",
        "decision": None,
        "decision_id": None,
        "decided_by": None,
        "feedback": None,
        "response": None,
        "timed_out": 0,
        "opened_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "closed_at_ms": None,
    } | _NO_CALL


def _requested(body: h.HumanInputRequested, event: Event, execution: Row | None) -> Row:
    return _blank(event, body.hold_id, execution) | {
        "request_id": body.request_id,
        "kind": body.kind,
        "question": body.question,
        "options": body.options,
        "fields": body.fields,
        "decision_type": body.decision_type,
        "requester": body.by,
        "agent": None if execution is None else execution["agent"],
    }


def _opened(
    previous: Row | None, body: h.HoldOpened, event: Event, call: Row | None, execution: Row | None
) -> Row:
    base = _blank(event, body.hold_id, execution) if previous is None else previous
    agent = None if execution is None else execution["agent"]
    shown = {name: call[name] for name in SHOWN_OF_CALL} if call is not None else {"agent": agent}
    return (
        base
        | shown
        | shown_at_opening(body, call, base["agent"] if call is None else None, base["request"])
        | {
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
            "on_reject": body.on_reject,
        }
    )


def _claimed(row: Row, body: h.HoldClaimed, event: Event) -> Row:
    return {"claimed_by": body.by, "claimed_until_ms": body.until_ms}


def _unclaimed(row: Row, body: h.HoldUnclaimed, event: Event) -> Row:
    return {"claimed_by": None, "claimed_until_ms": None}


def _delegated(row: Row, body: h.HoldDelegated, event: Event) -> Row:
    handed = Delegation(body.by, body.to, body.roles, body.person)
    return {
        "assignee": body.to,
        "delegations": delegations_to_text((*delegations_from_text(row["delegations"]), handed)),
        "claimed_by": None,
        "claimed_until_ms": None,
    }


def _extended(row: Row, body: h.HoldExtended, event: Event) -> Row:
    return {"deadline_at_ms": body.deadline_at_ms}


def _escalated(row: Row, body: h.HoldEscalated, event: Event) -> Row:
    # Escalation asks more people, never fewer, and a hold escalates once (services.domain.execution.evolve).
    asked = Asked(tuple(json_value(row["roles"])), tuple(json_value(row["reviewers"]))).asked_roles
    return {
        "escalated": 1,
        "roles": json_text(tuple(dict.fromkeys((*asked, *body.roles)))),
        "requirements": requirements_to_text(escalated(requirements_from_text(row["requirements"]))),
        "deadline_at_ms": body.deadline_at_ms,
        "escalate_at_ms": None,
        "on_timeout": "deny" if row["on_timeout"] == "escalate" else row["on_timeout"],
    }


def _expired(row: Row, body: h.HoldExpired, event: Event) -> Row:
    if body.on_timeout in STAYS_OPEN:
        return {"deadline_at_ms": None}
    return {"status": "expired", "timed_out": 1, "closed_at_ms": event.meta.at_ms}


def _cancelled(row: Row, body: h.HoldCancelled, event: Event) -> Row:
    return {"status": "cancelled", "feedback": body.reason, "closed_at_ms": event.meta.at_ms}


def _decided(row: Row, body: h.DecisionRecorded, event: Event) -> Row:
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
    votes = {"votes": json_text([*json_value(row["votes"]), vote])}
    if not body.resolves:
        return votes
    return votes | {
        "status": "resolved",
        "decision": body.decision,
        "decision_id": body.decision_id,
        "decided_by": body.by,
        "feedback": body.feedback,
        "closed_at_ms": event.meta.at_ms,
    }


def _answered(row: Row, body: h.HumanInputProvided, event: Event) -> Row:
    return {"response": body.response, "timed_out": int(body.timed_out), "decided_by": body.by}


_CHANGES: dict[type[Message], Callable[[Row, Any, Event], Row]] = {
    h.HoldClaimed: _claimed,
    h.HoldUnclaimed: _unclaimed,
    h.HoldDelegated: _delegated,
    h.HoldExtended: _extended,
    h.HoldEscalated: _escalated,
    h.HoldExpired: _expired,
    h.HoldCancelled: _cancelled,
    h.DecisionRecorded: _decided,
    h.HumanInputProvided: _answered,
}
