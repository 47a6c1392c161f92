"""The turn of a conversation, and the messages in it."""

from typing import Any

from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.resources import resource_of
from projections.tables.conversations import MESSAGES, TURNS, MessageRow, TurnRow
from projections.tables.executions import ExecutionRow
from schemas.message import Message
from schemas.record import Event


def turn_of(body: Message) -> str:
    """The turn that an event is about; empty if it is about none."""
    turn_id: str = body.__dict__.get("turn_id", "")
    return turn_id


def turn_resource(
    previous: TurnRow | None, event: Event, *, execution: ExecutionRow | None = None
) -> TurnRow | None:
    """The turn's row after an event.

    Args:
        previous: its row, or None before its message.
        event: an event of the turn.
        execution: the row of its execution; needed if the turn opens.

    Returns:
        The row; None while there is no turn.
    """
    effect = EFFECTS[type(event.body)]
    if effect.opens_turn is not None:
        return effect.opens_turn(event.body, event, Before(execution, None, None))
    if effect.turn is None or previous is None:
        return previous
    row = previous.copy()
    effect.turn(row, event.body, event)
    row["updated_at_ms"] = event.meta.at_ms
    return row


def turn_json(row: TurnRow) -> dict[str, Any]:
    """The turn as REST and the sockets serve it, from its row."""
    return _TURN(row)


def message_json(row: MessageRow) -> dict[str, Any]:
    """A message as REST serves it, from its row."""
    return _MESSAGE(row)


_TURN = resource_of(
    TURNS,
    ("conversation_id", "execution_id"),
    "turn_id",
    "agent",
    "status",
    "text",
    "sent_by",
    "attempt_id",
    "claimed_by",
    "lease_until_ms",
    "claims",
    "replies",
    "hold_id",
    "error",
    "opened_at_ms",
    "updated_at_ms",
    "ended_at_ms",
    ("traceparent", "trace"),
)
_MESSAGE = resource_of(
    MESSAGES,
    ("conversation_id", "execution_id"),
    "turn_id",
    "number",
    "role",
    "text",
    "details",
    ("by", "subject"),
    "at_ms",
)
