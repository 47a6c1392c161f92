"""The turns of conversations, and what was said in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from gateway.resources.base import Resource
from gateway.resources.holds import Recorded


class Turn(Resource):
    """A message to an agent, and how far its answer is; the turn's id is the message's.

    `waiting` for a worker, `claimed` by one, `suspended` until the hold `hold_id` is no longer open, or over.
    `traceparent` is the trace context of the message, which a worker continues; null if it was not traced.
    """

    conversation_id: str
    turn_id: str
    agent: str
    status: Literal["waiting", "claimed", "suspended", "completed", "failed", "cancelled"]
    text: str
    sent_by: str
    attempt_id: str | None
    claimed_by: str | None
    lease_until: datetime | None
    claims: int
    replies: int
    hold_id: str | None
    error: str | None
    opened_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    traceparent: str | None
    cursor: str | None = None


class ClaimedTurn(Resource):
    """The turn that the attempt has taken on; null if no turn of the agent waits for a worker.

    Its lease of `lease_seconds` is to be renewed once half of it has passed.
    """

    turn: Turn | None
    lease_seconds: float | None = None
    cursor: str | None = None


class Responded(Recorded):
    """A recorded answer; `message_id` names the turn in which the question was asked, if it was asked in one."""

    request_id: str
    conversation_id: str
    message_id: str | None


class Message(Resource):
    """A message of a conversation: `number` is 0 for one to the agent, whose replies in its turn count from 1."""

    conversation_id: str
    turn_id: str
    number: int
    role: Literal["user", "assistant"]
    text: str
    details: dict[str, Any]
    by: str
    at: datetime
