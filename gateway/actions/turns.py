"""The actions of a worker on a turn that it has taken on: each verb with its body, command and route."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from gateway.actions.verb import ClientMessage, Ref, Verb
from gateway.bodies import INTEGRAL, Body, ChosenId, ClientId, JsonObject, ScopeName, Text
from gateway.strictjson import canonical_text
from schemas import conversation_commands as k
from schemas.command_rules import limit_of
from schemas.conversation_commands import TurnOutcome
from schemas.limits import REPLIES_MAX
from schemas.message import Message

Said = Annotated[str, Field(min_length=1, max_length=limit_of(k.SendMessage, "text"))]


class SendMessage(Body):
    """Send the agent of a conversation a message. `user` wrote it, if the token is not their own."""

    message_id: ChosenId | None = None
    text: Said
    user: ScopeName = ""


class ClaimTurn(Body):
    """Take on a turn of an agent; the attempt's id is random per process and new for each claim."""

    attempt_id: ClientId


class OfTurn(Body):
    """What an attempt says of the turn that it has taken on."""

    attempt_id: ClientId


class RenewTurn(OfTurn):
    """Say that the attempt still works on the turn."""


class PostReply(OfTurn):
    """Say something before the turn is over."""

    number: Annotated[
        int, Field(ge=1, le=REPLIES_MAX, description="Counts the replies of the turn, from 1."), INTEGRAL
    ]
    text: Annotated[
        Text, Field(description="May be empty if there are details: then no client of the chat is shown it.")
    ] = ""
    details: JsonObject = Field(
        default_factory=dict, description="What the agent keeps beside the text, for its later turns."
    )


class YieldTurn(OfTurn):
    """Give the turn back. With `hold_id` it is taken on again once that hold is no longer open, else at once."""

    hold_id: ClientId | None = None


class EndTurn(OfTurn):
    """End the turn; `reply` is the last thing that the agent says in it."""

    outcome: TurnOutcome = "completed"
    reply: Text = ""
    error: Text = ""


class TurnMessage(ClientMessage):
    """A message about a turn that this client's attempt has taken on."""

    ref: Ref
    execution_id: ClientId
    turn_id: ClientId


class RenewTurnMessage(TurnMessage):
    """Say that the attempt still works on the turn."""

    type: Literal["renew_turn"]
    body: RenewTurn


class PostReplyMessage(TurnMessage):
    """Say something in a turn; this renews its lease, too."""

    type: Literal["post_reply"]
    body: PostReply


class YieldTurnMessage(TurnMessage):
    """Give a turn back."""

    type: Literal["yield_turn"]
    body: YieldTurn


class EndTurnMessage(TurnMessage):
    """End a turn."""

    type: Literal["end_turn"]
    body: EndTurn


def _post(turn_id: str, body: PostReply) -> Message:
    return k.PostReply(
        turn_id=turn_id,
        attempt_id=body.attempt_id,
        number=body.number,
        text=body.text,
        details=canonical_text(body.details, "details"),
    )


# In the order of their routes.
VERBS: tuple[Verb[Any], ...] = (
    Verb(
        name="renew",
        operation="renewTurn",
        says="Say that the attempt still works on the turn; accepted once half of its lease has passed.",
        body=RenewTurn,
        message=RenewTurnMessage,
        command=lambda turn_id, body: k.RenewTurn(turn_id=turn_id, attempt_id=body.attempt_id),
    ),
    Verb(
        name="reply",
        operation="postReply",
        says="Say something in the turn before it is over; this renews its lease, too.",
        body=PostReply,
        message=PostReplyMessage,
        command=_post,
    ),
    Verb(
        name="yield",
        operation="yieldTurn",
        says="Give the turn back, to be taken on again at once, or once a hold is no longer open.",
        body=YieldTurn,
        message=YieldTurnMessage,
        command=lambda turn_id, body: k.YieldTurn(
            turn_id=turn_id, attempt_id=body.attempt_id, hold_id=body.hold_id or ""
        ),
    ),
    Verb(
        name="end",
        operation="endTurn",
        says="End the turn.",
        body=EndTurn,
        message=EndTurnMessage,
        command=lambda turn_id, body: k.EndTurn(
            turn_id=turn_id,
            attempt_id=body.attempt_id,
            outcome=body.outcome,
            reply=body.reply,
            error=body.error,
        ),
    ),
)
# In the order in which an agent uses them.
MESSAGES: tuple[type[BaseModel], ...] = (PostReplyMessage, RenewTurnMessage, YieldTurnMessage, EndTurnMessage)
