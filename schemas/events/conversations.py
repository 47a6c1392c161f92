"""Facts about a conversation: an execution whose agent is sent messages and answers each in a turn."""

from typing import Literal

from schemas.message import Long, Message

YieldCause = Literal["waiting", "stopped", "lease"]
TurnEnding = Literal["completed", "failed", "cancelled"]


class MessageSent(Message):
    """A message to the agent. It opened a turn, whose id is the message's.

    `agent` is the agent whose own token sent it, empty for a person's: an agent may have read what it says.
    """

    turn_id: str
    text: str
    by: str
    agent: str = ""


class UserJoined(Message):
    """A token that acts for this user was used to message the agent, to propose or to ask.

    Or a reply was recorded with it in the agent's place; or this is the subject of a token that is no agent's, and
    that was used for such a reply.
    From then on the user counts among those who have sent a message (docs/identity.md).
    """

    user: str
    by: str


class TurnClaimed(Message):
    """An attempt took the turn on, until `lease_until_ms` unless it renews the lease."""

    turn_id: str
    attempt_id: str
    lease_until_ms: Long
    by: str


class TurnRenewed(Message):
    """The attempt said that it still works on the turn: it is believed until `lease_until_ms`."""

    turn_id: str
    attempt_id: str
    lease_until_ms: Long
    by: str


class ReplyPosted(Message):
    """The agent said something in the turn, its reply number `number`; `details` is a JSON object.

    It renews the lease.
    """

    turn_id: str
    attempt_id: str
    number: Long
    text: str
    details: str
    lease_until_ms: Long
    by: str


class TurnYielded(Message):
    """No attempt works on the turn any more.

    Its attempt waits for the hold `hold_id` (`waiting`: TurnResumed follows), has stopped, or let its lease end; then
    another attempt can take the turn on at once.
    """

    turn_id: str
    cause: YieldCause
    hold_id: str
    by: str


class TurnResumed(Message):
    """The hold for which the turn waited is no longer open: an attempt can take the turn on."""

    turn_id: str
    hold_id: str


class TurnEnded(Message):
    """The turn is over: the agent completed or failed it, or the execution ended."""

    turn_id: str
    outcome: TurnEnding
    error: str
    by: str


CONVERSATION_EVENTS: tuple[type[Message], ...] = (
    MessageSent,
    UserJoined,
    TurnClaimed,
    TurnRenewed,
    ReplyPosted,
    TurnYielded,
    TurnResumed,
    TurnEnded,
)
