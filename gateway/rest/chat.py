"""/agent/chat and /agent/hitl/respond: conversations by the addresses and words of earlier implementations."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.turns import Said
from gateway.bodies import ChosenId, ClientId, ScopeName, read_body
from gateway.live.cache import key_of
from gateway.operations.conversations import plan_message, subject_of
from gateway.operations.executions import made_id, plan_start
from gateway.operations.executions import subject_of as execution_of
from gateway.operations.holds import plan_decision
from gateway.operations.plan import Reply, planned
from gateway.operations.requests import find_request
from gateway.problems import Problem
from gateway.rest.documented import operation
from gateway.rest.history import read_execution
from gateway.rest.parameters import LAST_EVENT_ID, Parameter
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.shares.work import owner_of
from gateway.sockets.chat import ChatEvents, ended_frame
from gateway.sockets.outgoing import OutgoingFrames
from gateway.sockets.sse import EventStream, Stream
from gateway.sockets.subscriptions import read_cursor, subscribe
from projections.queries import resources
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.command_rules import unfit
from schemas.conversation_commands import SendMessage
from schemas.limits import CONVERSATION_IDLE_S, REPLIES_MAX
from schemas.refusals import Refusal

router = APIRouter(prefix="/agent", tags=["chat"])
Context = Annotated[RequestContext, Depends(context_of)]
ROUTE = "/agent/chat"
# As much of a conversation's first message is shown with each of its holds.
REQUEST_CHARS = 2_000
CONVERSATION = Parameter("conversation_id", "The conversation.", required=True)
MESSAGE = Parameter(
    "message_id", "Only what belongs to the answer to this message; the stream ends with the answer."
)
STREAM = {"description": "The events of the chat", "content": {"text/event-stream": {}}}


class Chat(b.Body):
    """Send an agent a message. Without a conversation one is opened, with the agent named or the token's own."""

    message: Said
    conversation_id: ChosenId | None = None
    agent: ChosenId | None = None
    message_id: ChosenId | None = None
    user: ScopeName = ""
    workspace: ScopeName = ""


class RespondToRequest(b.Body):
    """Answer an agent's question, or reject it with `response` null and `feedback`."""

    request_id: ClientId
    response: Any = Field(description="The answer, as `value` of a decision; null rejects the question.")
    conversation_id: ClientId | None = None
    feedback: b.Text = ""


@router.post(
    "/chat",
    operation_id="chat",
    response_class=Response,
    **operation({200: STREAM}, 404, 409, body=Chat, parameters=(LAST_EVENT_ID,), writes=True),
)
async def chat(context: Context) -> Response:
    """Send an agent a message, and stream its answer.

    The events are message, tool_call, hitl_requested, hitl_resolved, complete and error. `Last-Event-ID` continues
    after an event; the same `message_id` or `Idempotency-Key` is the same message.
    """
    given = await context.given()
    body = read_body(Chat, given())
    _check_message(context, body)
    message = {"text": body.message}
    if body.message_id is not None:
        message["message_id"] = body.message_id
    with _slot(context) as taken:
        conversation_id = await _conversation(context, body)
        return await _stream(context, conversation_id, message, taken)


@router.get(
    "/chat",
    operation_id="followChat",
    response_class=Response,
    **operation({200: STREAM}, 404, parameters=(CONVERSATION, MESSAGE, LAST_EVENT_ID)),
)
async def follow(context: Context) -> Response:
    """Stream the events of a conversation without sending a message; as `POST /agent/chat`."""
    conversation_id = context.query(CONVERSATION.name)
    if conversation_id is None:
        raise Problem(Refusal.INVALID, "conversation_id is required")
    with _slot(context) as taken:
        return await _stream(context, conversation_id, None, taken)


@router.post(
    "/hitl/respond",
    operation_id="respondToRequest",
    **operation({200: r.Responded}, 404, 409, body=RespondToRequest, writes=True),
)
async def respond(context: Context) -> Response:
    """Answer a question of an agent, by the id of the request."""
    given = await context.given()
    body = read_body(RespondToRequest, given())
    subject = await find_request(context.gate, context.actor, body.request_id, body.conversation_id)
    decision: dict[str, Any] = {"decision": "reject", "feedback": body.feedback}
    if body.response is not None:
        decision |= {"decision": "respond", "value": body.response}
    gate = context.gate
    reply = await context.priced(
        gate.perform(lambda: plan_decision(gate, context.claims, subject.id, lambda: decision, context.key))
    )
    row: HoldRow = await gate.reader.read(subject)
    turn = gate.live.cache.turns.first_open(key_of(row))
    where = {
        "request_id": body.request_id,
        "conversation_id": row["execution_id"],
        "message_id": None if turn is None else turn["turn_id"],
    }
    return answer(Reply(reply.status, orjson.dumps({**orjson.loads(reply.body), **where})))


def _check_message(context: RequestContext, body: Chat) -> None:
    """Check what needs no conversation to be checked, so that a message that is refused for it opens none.

    Raises:
        Problem: 422 invalid, the idempotency key, `Last-Event-ID` or the text; 413 too_large, the text.
    """
    message_id = body.message_id or made_id(context.actor, ROUTE, context.key)
    if (fault := unfit(SendMessage(turn_id=message_id, text=body.message))) is not None:
        raise Problem(*fault)
    if (cursor := _last_event_id(context)) is not None:
        read_cursor(context.gate, cursor)


def _last_event_id(context: RequestContext) -> str | None:
    return context.request.headers.get(LAST_EVENT_ID.name) or None


def _slot(context: RequestContext) -> ExitStack:
    """Take one of the caller's places for a stream.

    Raises:
        Problem: 429 quota, the caller has the maximum number of streams and sockets.
    """
    taken = ExitStack()
    taken.enter_context(context.gateway.socket_limit.open(context.actor))
    return taken


async def _conversation(context: RequestContext, body: Chat) -> str:
    """Return the id of the conversation that a message is for; it is opened if it does not exist.

    Raises:
        Problem: the token does not permit it; 422 invalid, it is a conversation with another agent.
    """
    gate, actor = context.gate, context.actor
    conversation_id = body.conversation_id or made_id(actor, ROUTE, context.key)
    if body.conversation_id is not None and await _exists(context, conversation_id, body.agent):
        return conversation_id
    start: dict[str, Any] = {
        "execution_id": conversation_id,
        "request": body.message[:REQUEST_CHARS],
        "user": body.user,
        "workspace": body.workspace,
        "idle_seconds": CONVERSATION_IDLE_S,
    }
    if body.agent is not None:
        start["agent"] = body.agent
    try:
        await gate.perform(lambda: plan_start(gate, context.claims, lambda: start, None))
    except Problem as problem:
        # Another client may have opened it a moment ago, with another first message.
        if problem.code is not Refusal.ID_REUSED or not await _exists(context, conversation_id, body.agent):
            raise
    return conversation_id


async def _exists(context: RequestContext, conversation_id: str, agent: str | None) -> bool:
    try:
        row: ExecutionRow = await context.gate.reader.read(execution_of(context.actor, conversation_id))
    except Problem as problem:
        if problem.code is Refusal.NOT_FOUND:
            return False
        raise
    if agent not in (None, row["agent"]):
        raise Problem(Refusal.INVALID, "agent: this is a conversation with another agent: leave it out")
    return True


async def _stream(
    context: RequestContext, conversation_id: str, message: dict[str, Any] | None, slot: ExitStack
) -> StreamingResponse:
    """Subscribe, then send the message, then stream: so nothing that the message causes is missed.

    The stream takes over the place in `slot`, and leaves it where it ends.
    """
    gateway, gate = context.gateway, context.gate
    cursor = _last_event_id(context)
    out = OutgoingFrames(gateway.settings.limits, owner_of(context.actor), gateway.budget)
    events = ChatEvents()
    stream = Stream(gate, gateway.hub, context.actor, gateway.metrics, out, context.authentication, events)
    with slot.pop_all() as taken:
        taken.callback(out.discard)
        taken.callback(gateway.hub.forget, stream)
        taken.enter_context(gateway.shutdown.ends(out.close))
        channels = [f"executions:{conversation_id}"]
        catching_up = await subscribe(gateway.hub, gate, stream, channels, cursor)
        with ExitStack() as unused:
            if catching_up is not None:
                unused.callback(catching_up.close)
            turn = await _turn(context, conversation_id, message)
            if turn is not None:
                events.follow(turn)
                if catching_up is None:
                    stream.first = await _replies_before(context, turn, events)
            unused.pop_all()
        stream.behind = cursor if catching_up is not None else None
        return EventStream(stream, taken.pop_all(), _and_its_end(stream, turn, catching_up))


async def _turn(
    context: RequestContext, conversation_id: str, message: dict[str, Any] | None
) -> TurnRow | None:
    """Send the message, or find it; return the turn that answers it. None: the reader follows the conversation."""
    gate = context.gate
    if message is not None:
        plan = await planned(
            gate,
            lambda: plan_message(gate, context.claims, conversation_id, lambda: message, context.key, ROUTE),
        )
        await context.priced(gate.perform(lambda: plan))
        subject = plan.subject
    else:
        message_id = context.query(MESSAGE.name)
        subject = None if message_id is None else subject_of(context.actor, conversation_id, message_id)
    if subject is None:
        return None
    row: TurnRow = await gate.reader.read(subject)
    return row


async def _replies_before(context: RequestContext, turn: TurnRow, events: ChatEvents) -> tuple[bytes, ...]:
    """Return the events of the replies before this reader came: it has sent its message before."""
    if not turn["replies"]:
        return ()
    actor, conversation_id = context.actor, turn["execution_id"]
    rows = await read_execution(
        context,
        conversation_id,
        lambda moment: resources.messages(
            moment,
            actor.tenant,
            actor.project,
            conversation_id,
            after_offset=turn["log_offset"],
            limit=REPLIES_MAX,
        ),
    )
    return tuple(events.replayed(rows))


async def _and_its_end(
    stream: Stream, turn: TurnRow | None, catching_up: Coroutine[Any, Any, None] | None
) -> None:
    """Catch up, and tell the reader of a turn that was over before: its end may not be among what is caught up."""
    if catching_up is not None:
        await catching_up
    if turn is not None and (frame := ended_frame(turn)) is not None:
        stream.push(frame)
