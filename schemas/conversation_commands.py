"""The commands of a conversation: messages to an agent, and what its workers do about them."""

from typing import Literal

from schemas.fields import AttemptId, ChosenId, Count, Id, Json, Question, Text
from schemas.message import Message

TurnOutcome = Literal["completed", "failed"]


class SendMessage(Message):
    """Send the agent a message: it opens a turn of the conversation, whose id is the message's."""

    turn_id: ChosenId
    text: Question


class ClaimTurn(Message):
    """Take on the conversation's next turn. `attempt_id` is random per process and never derived from the turn."""

    turn_id: Id
    attempt_id: AttemptId


class RenewTurn(Message):
    """Say that the attempt still works on its turn. Accepted when no more than half of its lease is left."""

    turn_id: Id
    attempt_id: AttemptId


class PostReply(Message):
    """Say something in a turn. `number` counts the turn's replies from 1; `details` is a canonical JSON object."""

    turn_id: Id
    attempt_id: AttemptId
    number: Count
    text: Text
    details: Json = "{}"


class YieldTurn(Message):
    """Give a turn back: it is taken on anew at once or, with `hold_id`, once that hold is no longer open."""

    turn_id: Id
    attempt_id: AttemptId
    hold_id: Id = ""


class EndTurn(Message):
    """End a turn. With `reply`, this is the last thing that the agent says in it."""

    turn_id: Id
    attempt_id: AttemptId
    outcome: TurnOutcome
    reply: Text = ""
    error: Text = ""
