"""The effects of a conversation's events."""

from collections.abc import Iterable
from typing import Any

from projections.folds.effects import Before, Effect, New, new
from projections.folds.rows import json_text, json_value, owner_of
from projections.tables.conversations import MESSAGES, MessageRow, TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.events import conversations as v
from schemas.record import Event


def _open(body: v.MessageSent, event: Event, before: Before) -> TurnRow:
    execution = before.execution
    return {
        **owner_of(event),
        "turn_id": body.turn_id,
        "agent": "" if execution is None else execution["agent"],
        "status": "waiting",
        "text": body.text,
        "sent_by": body.by,
        "attempt_id": None,
        "claimed_by": None,
        "lease_until_ms": None,
        "claims": 0,
        "replies": 0,
        "hold_id": None,
        "error": None,
        "opened_at_ms": event.meta.at_ms,
        "updated_at_ms": event.meta.at_ms,
        "ended_at_ms": None,
        "log_offset": event.offset,
        "trace": event.meta.trace or None,
    }


def message_row(event: Event) -> MessageRow:
    """The message in an event: one to the agent (MessageSent), or a reply of the agent (ReplyPosted)."""
    body: Any = event.body
    is_reply = isinstance(body, v.ReplyPosted)
    return {
        **owner_of(event),
        "turn_id": body.turn_id,
        "number": body.number if is_reply else 0,
        "role": "assistant" if is_reply else "user",
        "text": body.text,
        "details": body.details if is_reply else "{}",
        "subject": body.by,
        "at_ms": event.meta.at_ms,
        "log_partition": event.partition,
        "log_offset": event.offset,
    }


def _message(body: v.MessageSent | v.ReplyPosted, event: Event, before: Before) -> Iterable[New]:
    return [new(MESSAGES, message_row(event))]


def _note_sender(row: ExecutionRow, body: v.MessageSent, hold: HoldRow | None) -> None:
    _add_sender(row, body.by)


def _note_user(row: ExecutionRow, body: v.UserJoined, hold: HoldRow | None) -> None:
    _add_sender(row, body.user)


def _add_sender(row: ExecutionRow, subject: str) -> None:
    senders = json_value(row["senders"]) or []
    if subject not in senders:
        row["senders"] = json_text([*senders, subject])


def _note_claim(row: ExecutionRow, body: v.TurnClaimed, hold: HoldRow | None) -> None:
    row["turn_id"] = body.turn_id


def _note_end(row: ExecutionRow, body: v.TurnEnded, hold: HoldRow | None) -> None:
    if row["turn_id"] == body.turn_id:
        row["turn_id"] = None


def _claim(row: TurnRow, body: v.TurnClaimed, event: Event) -> None:
    row.update(
        {
            "status": "claimed",
            "attempt_id": body.attempt_id,
            "claimed_by": body.by,
            "lease_until_ms": body.lease_until_ms,
            "claims": row["claims"] + 1,
            "hold_id": None,
        }
    )


def _renew(row: TurnRow, body: v.TurnRenewed, event: Event) -> None:
    row["lease_until_ms"] = body.lease_until_ms


def _count(row: TurnRow, body: v.ReplyPosted, event: Event) -> None:
    row.update({"replies": body.number, "lease_until_ms": body.lease_until_ms})


def _yield(row: TurnRow, body: v.TurnYielded, event: Event) -> None:
    status = "suspended" if body.cause == "waiting" else "waiting"
    row.update({"status": status, "hold_id": body.hold_id or None, "lease_until_ms": None})


def _resume(row: TurnRow, body: v.TurnResumed, event: Event) -> None:
    row.update({"status": "waiting", "hold_id": None})


def _end(row: TurnRow, body: v.TurnEnded, event: Event) -> None:
    row.update(
        {
            "status": body.outcome,
            "error": body.error or None,
            "hold_id": None,
            "lease_until_ms": None,
            "ended_at_ms": event.meta.at_ms,
        }
    )


EFFECTS = (
    Effect(v.MessageSent, execution=_note_sender, opens_turn=_open, rows=_message),
    Effect(v.UserJoined, execution=_note_user),
    Effect(v.TurnClaimed, execution=_note_claim, turn=_claim),
    Effect(v.TurnRenewed, turn=_renew),
    Effect(v.ReplyPosted, turn=_count, rows=_message),
    Effect(v.TurnYielded, turn=_yield),
    Effect(v.TurnResumed, turn=_resume),
    Effect(v.TurnEnded, execution=_note_end, turn=_end),
)
