"""The messages of the human bridge as models, for the published document and for tests.

The bridge translates frames by hand (`gateway.sockets.bridge_messages`); these models are their contract. A message
that it passes on as it is has the model of `placet.v1`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.resources.holds import Asks
from gateway.sockets.bridge_messages import Answer, Publish
from gateway.sockets.protocol import Authenticate, Authenticated, Error, Ping, Pong, ResyncRequired
from schemas.commands import RequestKind

TaskId = Annotated[str, Field(description="The question's id: the `request_id` of REST.")]


class BridgeMessage(BaseModel):
    """A message of the bridge; more fields may be added."""

    model_config = ConfigDict(extra="allow")

    task_id: TaskId


class Question(BridgeMessage):
    """An open question that this person may see, at the beginning and as it comes. Variables are not sent."""

    type: Literal["publish"]
    prompt: str
    kind: RequestKind
    options: list[
        Annotated[Any, Field(description="As it was asked: a text, a number, a boolean or an object.")]
    ]
    hold_id: Annotated[str, Field(description="Names the question if two agents have chosen one task id.")]
    asks: Annotated[
        Asks | None, Field(description="What a permission is for, and how a decision may be answered.")
    ]
    fields: list[Any]
    decision_type: str
    input_schema: Annotated[dict[str, Any] | None, Field(description="The JSON Schema of an answer.")]
    deadline_at: datetime | None


class More(BaseModel):
    """More questions are open than a client is sent at once: the next ones come as those that it was sent end."""

    model_config = ConfigDict(extra="allow")

    type: Literal["more"]
    shown: Annotated[int, Field(description="How many open questions this client was sent.")]


class Published(BridgeMessage):
    """The question that this client published is asked."""

    type: Literal["published"]
    status: Literal["waiting_for_human"]


class AnswerTaken(BridgeMessage):
    """The answer that this client sent is the one that counts."""

    type: Literal["answered"]


class Response(BridgeMessage):
    """A question was answered: to people, and to the agent that published it on this connection."""

    type: Literal["answer"]
    response: Annotated[Any, Field(description="The answer: any JSON.")]


class Closed(BridgeMessage):
    """A question has ended without an answer, or was handed to another person."""

    type: Literal["closed"]
    status: Literal["rejected", "expired", "cancelled", "withdrawn"]
    feedback: Annotated[str | None, Field(description="Why it was rejected.")]
    response: Annotated[
        Any, Field(description="The default that took effect as nobody answered in time; null without.")
    ]


class BridgeError(Error):
    """A refusal of what this client sent, or a problem with the connection, as an `error` of `placet.v1`."""

    ref: Annotated[str | None, Field(description="Null: messages of the bridge have no `ref`.")] = None
    task_id: Annotated[
        str | None, Field(description="What the refused message named; null if it named none.")
    ] = None


# By names that are unique over both sockets: types of the bridge mean something else at `/v1/ws`, and `publish` and
# `answer` something else in each direction.
CLIENT: dict[str, type[BaseModel]] = {
    "authenticate": Authenticate,
    "bridge_publish": Publish,
    "bridge_answer": Answer,
    "ping": Ping,
}
SERVER: dict[str, type[BaseModel]] = {
    "authenticated": Authenticated,
    "bridge_question": Question,
    "bridge_more": More,
    "bridge_published": Published,
    "bridge_answer_taken": AnswerTaken,
    "bridge_response": Response,
    "bridge_closed": Closed,
    "bridge_error": BridgeError,
    "pong": Pong,
    "resync_required": ResyncRequired,
}
# The messages of a client that can continue a trace.
TRACED = ("bridge_publish", "bridge_answer")
