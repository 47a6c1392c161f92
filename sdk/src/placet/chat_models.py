"""The resources of conversations, as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from placet.models import Object


@dataclass(frozen=True)
class ChatEvent:
    """One event of a chat: message, tool_call, hitl_requested, hitl_resolved, more, complete or error.

    Attributes:
        type: what it is.
        cursor: where to go on after it; empty for what was open before, except the last of it. Of an `error` with the
            code `unavailable` it can lead back to the beginning, from where the stream then goes on.
        body: its content.
    """

    type: str
    cursor: str = ""
    body: Object = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class ChatMessage:
    """A message of a conversation: of role `user`, or a reply of role `assistant`, counted from 1 in its turn."""

    turn_id: str
    role: str
    text: str
    number: int = 0
    details: Object = field(default_factory=dict, hash=False)
    by: str = ""
    at: datetime | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Responded:
    """The answer to a response to a question.

    Attributes:
        status: resolved, or recorded while further people must agree.
        message_id: the turn in which the question was asked; empty if it was asked outside of one.
    """

    status: str
    decision_id: str = ""
    request_id: str = ""
    conversation_id: str = ""
    message_id: str = ""
    cursor: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ClaimedTurn:
    """A turn that a worker has taken on.

    Attributes:
        replies: the number of replies that earlier attempts posted.
        traceparent: the trace context of its message; None if that was not traced.
    """

    conversation_id: str
    turn_id: str
    attempt_id: str
    agent: str = ""
    text: str = ""
    sent_by: str = ""
    replies: int = 0
    claims: int = 0
    lease_until: datetime | None = None
    lease_seconds: float = 30.0
    cursor: str = ""
    traceparent: str | None = None
    raw: Object = field(default_factory=dict, repr=False, compare=False)
