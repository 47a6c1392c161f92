"""The messages of the WebSocket `placet.v1` as models, for the published documents and for tests.

Where speed matters, frames are read and written by hand; these models are their contract. The fields of a pushed
message are beside its `type` and `cursor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway import bodies as b
from gateway import resources as r
from gateway.actions import calls, turns
from gateway.actions.holds import CHANGES, VERBS
from gateway.actions.verb import ClientMessage, Ref

if TYPE_CHECKING:
    Change = str
else:
    Change = Literal[tuple(CHANGES.values())]

RefOfAsked = Annotated[
    str | None, Field(description="The `ref` of the message that this answers; null if it had none.")
]
Cursor = Annotated[
    str, Field(description="The position of this message in the log: subscribe with it to continue.")
]
# An answer's cursor covers exactly what was sent to the connection's subscriptions before it, or it is absent.
CursorIfAny = Annotated[
    str | None,
    Field(
        description="Covers what was sent to your subscriptions before this message: subscribe with it to continue. "
        "Absent if this connection has no subscription, or messages were dropped: keep the one that you have.",
    ),
]


class Received(BaseModel):
    """A message from the gateway; more fields may be added."""

    model_config = ConfigDict(extra="allow")

    cursor: Cursor


class Answered(BaseModel):
    """A message from the gateway that belongs to no subscription; more fields may be added."""

    model_config = ConfigDict(extra="allow")

    cursor: CursorIfAny = None


class Authenticate(ClientMessage):
    """The first message, within 5 s, if no bearer header was sent."""

    type: Literal["authenticate"]
    token: str
    project: Annotated[
        str,
        Field(
            description="For a token of the whole tenant: the project to work in, as the header Placet-Project."
        ),
    ] = ""


class Subscribe(ClientMessage):
    """Subscribe to channels: `holds`, `events`, `executions:ID`, `calls:EXECUTION/CALL`.

    Without a cursor a snapshot of each channel comes first; with one, the messages missed since. More channels can be
    subscribed to at any time.
    """

    type: Literal["subscribe"]
    ref: Ref | None = None
    channels: list[str]
    cursor: Annotated[
        str | None,
        Field(
            description="Continue from here: the `cursor` of the last message that you have handled and that has "
            "one; `earliest`: from the first message on."
        ),
    ] = None


class Unsubscribe(ClientMessage):
    """Unsubscribe from channels."""

    type: Literal["unsubscribe"]
    ref: Ref | None = None
    channels: list[str]


class Ping(ClientMessage):
    """Request a `pong`, to check that the connection is alive."""

    type: Literal["ping"]
    ref: Ref | None = None


class Decide(b.DecideHold):
    """Decide a hold, as POST /v1/holds/{hold_id}/decision."""

    type: Literal["decision"]
    ref: Ref | None = None
    hold_id: b.ClientId


class StartExecution(ClientMessage):
    """Open an execution, as POST /v1/executions."""

    type: Literal["start_execution"]
    ref: Ref
    body: b.StartExecution


class FinishExecution(ClientMessage):
    """End an execution."""

    type: Literal["finish_execution"]
    ref: Ref
    execution_id: b.ClientId
    body: b.FinishExecution


class Propose(ClientMessage):
    """Propose a tool call. The reply comes with the verdict; a held call's decision comes as a push."""

    type: Literal["propose"]
    ref: Ref
    execution_id: b.ClientId
    body: b.ProposeToolCall


class Request(ClientMessage):
    """Ask a person something."""

    type: Literal["request"]
    ref: Ref
    body: b.RequestHumanInput


class Authenticated(Answered):
    """The token is valid."""

    type: Literal["authenticated"]
    subject: str
    roles: list[str]


class Snapshot(Received):
    """The state of a channel: open holds, an execution or a call, in parts of at most 256 KiB or one item.

    Of `total` items at most 1,000 are sent, and no more than half of what may wait for a slow reader.
    """

    type: Literal["snapshot"]
    channel: str
    items: list[dict[str, Any]]
    total: Annotated[int, Field(description="How many there are; `GET /v1/holds?status=open` lists all.")]
    more: Annotated[bool, Field(description="Whether another part of this channel's snapshot follows.")]


class PendingReview(Received, r.Hold):
    """A tool call waits for a person."""

    type: Literal["tool_call_pending_review"]


class HitlRequested(Received, r.Hold):
    """An agent asks a person something."""

    type: Literal["hitl_requested"]


class HoldChanged(Received, r.Hold):
    """A hold that stays open has changed."""

    type: Literal["hold_changed"]
    change: Change


class HoldResolved(Received, r.Hold):
    """A hold was decided, expired or cancelled."""

    type: Literal["hold_resolved"]


class ToolCallDecided(Answered, r.ToolCall):
    """A call was released, denied, cancelled, revoked or expired. Its proposer gets this without a subscription.

    `expired` means that the call was not decided in time, or that its release was not used in time: it does not run.
    `grant.token` is present for readers who may consume the grant; it is null for others, and in replayed messages.
    """

    type: Literal["tool_call_decided"]


class ToolCallChanged(Received, r.ToolCall):
    """A call was proposed, held, consumed or ended."""

    type: Literal["tool_call_changed"]


class ExecutionStateChanged(Received, r.Execution):
    """The displayed state of an execution has changed."""

    type: Literal["execution_state_changed"]


class ConversationMessage(Received, r.Message):
    """A message of a conversation: one to its agent, or a reply."""

    type: Literal["message"]


class TurnChanged(Received, r.Turn):
    """A turn of a conversation was opened, taken on, given back, resumed or ended."""

    type: Literal["turn_changed"]


class LogEvent(Received):
    """A recorded event, on the channel `events`."""

    type: Literal["event"]
    event_type: str
    event_id: str
    at: str
    execution_id: str
    version: Annotated[int, Field(description="Counts the execution's events.")]
    term: Annotated[
        int, Field(description="The term of the decider that wrote it: it grows with each new writer.")
    ]
    partition: int
    offset: int
    command_id: str
    data: dict[str, Any]


class Reply(Answered):
    """The answer to the message with this `ref`: an HTTP status, and the REST resource or problem as body."""

    type: Literal["reply"]
    ref: RefOfAsked
    status: int
    body: dict[str, Any]


class ResyncRequired(Received):
    """Messages were lost or are no longer available; every subscription has ended. Subscribe again without a cursor.

    Subscribing with this message's cursor has the same effect: the snapshots, and on `events` what follows from here.
    """

    type: Literal["resync_required"]
    reason: Annotated[
        Literal["too_slow", "gone"],
        Field(
            description="`too_slow`: more was waiting for you, or for all readers of your subject, than may wait. "
            "Nothing is lost for one who subscribes again with the cursor of the last message that it has. `gone`: "
            "what follows your cursor is no longer available, or never was in this log."
        ),
    ]
    detail: str


class CaughtUp(Received):
    """Everything that the log had when the stream was requested was sent; the stream ends.

    Only on the stream of server-sent events, with `follow=false`.
    """

    type: Literal["caught_up"]


class Error(Answered):
    """A problem (RFC 9457) with the connection, or with a message whose `ref` cannot be read.

    The problem's own `type` is in `problem`, because the message has a `type` of its own.
    """

    type: Literal["error"]
    ref: Annotated[
        str | None,
        Field(description="Null: a problem with a message whose `ref` can be read is sent as its reply."),
    ]
    problem: Annotated[str, Field(description="The `type` of the problem document: `/problems/CODE`.")]
    title: Annotated[str, Field(description="The code in words.")]
    status: Annotated[int, Field(description="The HTTP status that REST would answer.")]
    code: str
    detail: Annotated[str, Field(description="What is wrong, for a person.")]
    errors: Annotated[
        list[r.FieldError] | None, Field(description="What is wrong with which field, if it is known.")
    ] = None
    winning_decision_id: Annotated[
        str | None, Field(description="The decision that came first, if another one did.")
    ] = None
    retry_after: Annotated[
        int | None, Field(description="After how many seconds to try again, if that may help.")
    ] = None


class Pong(Answered):
    """The answer to a `ping`."""

    type: Literal["pong"]
    ref: RefOfAsked


FOR_EVERYONE: tuple[type[BaseModel], ...] = (Authenticate, Subscribe, Unsubscribe, Ping)
FOR_PEOPLE: tuple[type[BaseModel], ...] = (
    Decide,
    *(verb.message for verb in VERBS if verb.message is not None),
)
FOR_AGENTS: tuple[type[BaseModel], ...] = (
    StartExecution,
    Propose,
    *calls.MESSAGES,
    Request,
    FinishExecution,
    *turns.MESSAGES,
)
CLIENT_MESSAGES = (*FOR_EVERYONE, *FOR_PEOPLE, *FOR_AGENTS)

ANSWERS: tuple[type[BaseModel], ...] = (Authenticated, Reply, Error, Pong, Snapshot, ResyncRequired, CaughtUp)
HOLD_PUSHES: tuple[type[BaseModel], ...] = (PendingReview, HitlRequested, HoldChanged, HoldResolved)
RUN_PUSHES: tuple[type[BaseModel], ...] = (
    ToolCallDecided,
    ToolCallChanged,
    ExecutionStateChanged,
    ConversationMessage,
    TurnChanged,
    LogEvent,
)
SERVER_MESSAGES = (*ANSWERS, *HOLD_PUSHES, *RUN_PUSHES)


def type_of(model: type[BaseModel]) -> str:
    """Return the `type` of the messages of a model."""
    return str(model.model_fields["type"].annotation.__args__[0])  # type: ignore[union-attr]
