"""What analysts count: a row for each word of a person, each difference that an edit made, each piece of evidence."""

from __future__ import annotations

from typing import Any

from projections.folds.calls import TERMINAL
from projections.folds.edits import patch_of
from projections.folds.rows import Row, json_text, owner_of
from schemas.canonical import canonical, parse_strict
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.message import Message
from schemas.record import Event
from schemas.refusals import Refusal

# What became of a word: it ended the hold; it waits for others'; it came after the end; it was not let.
DECIDED, COUNTED, LOST, REFUSED = "decided", "counted", "lost", "refused"
_TOO_LATE = frozenset({Refusal.ALREADY_DECIDED, Refusal.EXPIRED, Refusal.NOT_OPEN, Refusal.EXECUTION_CLOSED})

_OUTCOMES: dict[type[Message], str] = {
    c.ToolCallSucceeded: "success",
    c.ToolCallFailed: "failure",
    c.ToolCallOutcomeUnknown: "unknown",
}
# An answer instead of a run means that the call does not happen (docs/trust.md).
_DECISIONS = {"approve": "approval", "edit": "edit", "reject": "rejection", "respond": "rejection"}


def vote_row(event: Event, hold: Row | None) -> Row | None:
    """The row of a person's word, counted or refused; None for other events.

    Args:
        event: any event of an execution.
        hold: the row, before the event, of the hold that it is about.
    """
    body = event.body
    if isinstance(body, h.DecisionRecorded):
        word = _counted(body)
    elif isinstance(body, h.DecisionRefused):
        word = _refused(body)
    else:
        return None
    known: Row = dict.fromkeys(("call_id", "request_id", "agent", "tool")) if hold is None else hold
    return {
        **owner_of(event),
        **_place(event),
        "hold_id": body.hold_id,
        "call_id": known["call_id"],
        "request_id": known["request_id"],
        "agent": known["agent"],
        "tool": known["tool"],
        "digest": body.digest,
        "subject": body.by,
        "decision": body.decision,
        **word,
    }


def _counted(body: h.DecisionRecorded) -> Row:
    return {
        "revision": body.revision,
        "person": body.person or None,
        "roles": json_text(body.roles),
        "outcome": DECIDED if body.resolves else COUNTED,
        "code": None,
        "detail": None,
        "decision_id": body.decision_id,
        "winning_decision_id": None,
        "feedback": body.feedback,
        "view_digest": body.view_digest or None,
        "dwell_ms": body.dwell_ms,
    }


def _refused(body: h.DecisionRefused) -> Row:
    return {
        "revision": None,
        "person": None,
        "roles": None,
        "outcome": LOST if body.code in _TOO_LATE else REFUSED,
        "code": str(body.code),
        "detail": body.detail,
        "decision_id": None,
        "winning_decision_id": body.winning_decision_id or None,
        "feedback": "",
        "view_digest": None,
        "dwell_ms": None,
    }


def edit_rows(event: Event, call: Row | None) -> list[Row]:
    """The differences that an edit makes, a row each; none for other events.

    Args:
        event: any event of an execution.
        call: the row, before the event, of the call that it is about.
    """
    body = event.body
    if call is None or not isinstance(body, h.DecisionRecorded) or body.decision != "edit":
        return []
    if body.edited_arguments is None:
        return []
    before: Any = parse_strict(call["arguments"])
    shared = {
        **owner_of(event),
        **_place(event),
        "call_id": call["call_id"],
        "revision": call["revision"] + 1,
        "agent": call["agent"],
        "tool": call["tool"],
        "hold_id": body.hold_id,
        "decision_id": body.decision_id,
        "subject": body.by,
        "feedback": body.feedback,
    }
    return [
        shared
        | {
            "number": number,
            "op": one["op"],
            "path": one["path"],
            "before": None if one["op"] == "add" else canonical(_at(before, one["path"])),
            "after": None if one["op"] == "remove" else canonical(one["value"]),
        }
        for number, one in enumerate(patch_of(before, parse_strict(body.edited_arguments)), 1)
    ]


def evidence_row(event: Event, call: Row | None) -> Row | None:
    """The row of what a fact says of how an agent uses a tool; None where it says nothing (docs/trust.md).

    Args:
        event: any event of an execution.
        call: the row, before the event, of the call that it is about.
    """
    if call is None or call["status"] in TERMINAL:
        return None
    kind = _OUTCOMES.get(type(event.body))
    if isinstance(event.body, h.DecisionRecorded) and is_about_running(event.body, call):
        kind = _DECISIONS[event.body.decision]
    if kind is None:
        return None
    return {
        **owner_of(event),
        **_place(event),
        "call_id": call["call_id"],
        "agent": call["agent"],
        "tool": call["tool"],
        "kind": kind,
    }


def is_about_running(body: h.DecisionRecorded, call: Row) -> bool:
    """Whether a word decided if a call runs: not one of several that are asked for, nor one on what happened."""
    return body.resolves and call["status"] != "outcome_unknown"


def _place(event: Event) -> Row:
    return {
        "at_ms": event.meta.at_ms,
        "event_id": event.meta.event_id,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def _at(value: Any, pointer: str) -> Any:
    """What stands at a JSON Pointer (RFC 6901)."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
