"""/agent/chat and /agent/hitl/respond: conversations by the addresses and words of earlier implementations."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.responses import Response

from gateway import bodies as b
from gateway import resources as r
from gateway.actions.turns import Said
from gateway.bodies import ChosenId, ClientId, ScopeName, read_body
from gateway.live.cache import key_of
from gateway.live.cursor import Vector
from gateway.live.live import lane_of
from gateway.live.reader import Subject
from gateway.operations.conversations import check_converses, plan_message, subject_of
from gateway.operations.executions import made_id, plan_start
from gateway.operations.executions import subject_of as execution_of
from gateway.operations.holds import plan_decision
from gateway.operations.plan import Reply, planned
from gateway.operations.requests import find_request
from gateway.problems import Problem
from gateway.pushes.catching_up import AHEAD_S
from gateway.pushes.resyncs import Resync
from gateway.rest.documented import operation
from gateway.rest.parameters import LAST_EVENT_ID, Parameter
from gateway.rest.request_context import RequestContext, answer, context_of
from gateway.rest.turn_past import begun, past_of
from gateway.shares.work import owner_of
from gateway.sockets.chat import ChatEvents, open_work
from gateway.sockets.outgoing import OutgoingFrames
from gateway.sockets.sse import EventStream, Stream
from gateway.sockets.subscriptions import read_cursor, subscribe
from projections.queries.resources import turn_at
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.command_rules import unfit
from schemas.conversation_commands import SendMessage
from schemas.limits import CONVERSATION_IDLE_S
from schemas.refusals import Refusal
from schemas.topics import partition_of

router = APIRouter(prefix="/agent", tags=["chat"])
Context = Annotated[RequestContext, Depends(context_of)]
ROUTE = "/agent/chat"
# As much of a conversation's first message is shown with each of its holds.
REQUEST_CHARS = 2_000
SEVERAL = "several conversations have a request with this id: name the conversation with conversation_id"
# What refusals call the fields of the commands that these messages become, and what they are called here.
OF_MESSAGE = {"text": "message", "turn_id": "message_id"}
OF_START = {"request": "message", "execution_id": "conversation_id"}
OF_ANSWER = {"value": "response"}
CONVERSATION = Parameter("conversation_id", "The conversation.", required=True)
MESSAGE = Parameter(
    "message_id", "Only what belongs to the answer to this message; the stream ends with the answer."
)
STREAM = {"description": "The events of the chat", "content": {"text/event-stream": {}}}
OVER = {
    "description": "The turn is over, and `Last-Event-ID` is its last event or after it: nothing more will come, and "
    "a client must not connect again"
}


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
    **operation({200: STREAM, 204: OVER}, 404, 409, body=Chat, parameters=(LAST_EVENT_ID,), writes=True),
)
async def chat(context: Context) -> Response:
    """Send an agent a message, and stream its answer.

    The events are message, tool_call, hitl_requested, hitl_resolved, complete and error. `Last-Event-ID` continues
    after an event; without it the stream has everything from the beginning of the turn. The same `message_id` or
    `Idempotency-Key` is the same message. Close the connection at `complete` and at an `error` of the turn.
    """
    given = await context.given()
    body = read_body(Chat, given())
    _check_message(context, body)
    message = {"text": body.message, "user": body.user}
    if body.message_id is not None:
        message["message_id"] = body.message_id
    with _slot(context) as taken:
        conversation_id = await _conversation(context, body)
        return await _stream(context, conversation_id, message, taken)


@router.get(
    "/chat",
    operation_id="followChat",
    response_class=Response,
    **operation({200: STREAM, 204: OVER}, 404, parameters=(CONVERSATION, MESSAGE, LAST_EVENT_ID)),
)
async def follow(context: Context) -> Response:
    """Stream the events of a conversation without sending a message; as `POST /agent/chat`.

    Without `message_id` and `Last-Event-ID` the stream begins with the calls and questions that are open, as far as
    they have room; questions get it first, and the event more says how many of which are shown.
    """
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
    """Answer a question of an agent, by the id of the request.

    `message_id` is the turn in which the question was asked, also once that is over: null if it was asked in none.
    """
    given = await context.given()
    body = read_body(RespondToRequest, given())
    subject = await find_request(context.gate, context.actor, body.request_id, body.conversation_id, SEVERAL)
    decision: dict[str, Any] = {"decision": "reject", "feedback": body.feedback}
    if body.response is not None:
        decision |= {"decision": "respond", "value": body.response}
    gate = context.gate
    # Before the answer is recorded: soon after it, the turn that waited for it can be over.
    asked: HoldRow = await gate.reader.read(subject)
    waits = gate.live.cache.turns.first_open(key_of(asked))
    try:
        reply = await context.priced(
            gate.perform(
                lambda: plan_decision(gate, context.claims, subject.id, lambda: decision, context.key)
            )
        )
    except Problem as problem:
        raise problem.named(OF_ANSWER) from problem
    turn = await _asked_in(context, asked, waits)
    where = {
        "request_id": body.request_id,
        "conversation_id": asked["execution_id"],
        "message_id": None if turn is None else turn["turn_id"],
    }
    return answer(Reply(reply.status, orjson.dumps({**orjson.loads(reply.body), **where})))


async def _asked_in(context: RequestContext, asked: HoldRow, waits: TurnRow | None) -> TurnRow | None:
    """Return the turn in which a question was asked; None if it was asked in none.

    The present turn can be a later one. If the views cannot be read, an answer that was just recorded stands, and its
    turn is the one that waited for it. The repeat of an earlier answer is refused: nothing is known of its turn.
    """
    gate, at_ms = context.gate, asked["opened_at_ms"]
    owner = (asked["tenant"], asked["project"], asked["execution_id"])
    try:
        # Once the views have the question they have every turn that ended before it.
        await gate.reader.stored(Subject("request", asked["tenant"], asked["project"], "", asked["hold_id"]))
        turn, _ = await context.ask_views(lambda moment: turn_at(moment, *owner, at_ms))
    except Problem as problem:
        if problem.code is not Refusal.UNAVAILABLE or asked["status"] != "open":
            raise
        return waits if waits is not None and waits["opened_at_ms"] <= at_ms else None
    return turn


def _check_message(context: RequestContext, body: Chat) -> None:
    """Check what needs no conversation to be checked, so that a message that is refused for it opens none.

    Raises:
        Problem: 422 invalid, the idempotency key, `Last-Event-ID` or the text; 413 too_large, the text.
    """
    message_id = body.message_id or made_id(context.gate, context.actor, ROUTE, context.key)
    if (fault := unfit(SendMessage(turn_id=message_id, text=body.message))) is not None:
        raise Problem(*fault).named(OF_MESSAGE)
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
    conversation_id = body.conversation_id or made_id(gate, actor, ROUTE, context.key)
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
            raise problem.named(OF_START) from problem
    return conversation_id


async def _exists(context: RequestContext, conversation_id: str, agent: str | None) -> bool:
    try:
        row: ExecutionRow = await context.gate.reader.read(execution_of(context.actor, conversation_id))
    except Problem as problem:
        if problem.code is Refusal.NOT_FOUND:
            return False
        raise
    check_converses(context.actor, row["agent"])
    if agent not in (None, row["agent"]):
        raise Problem(Refusal.INVALID, "agent: this is a conversation with another agent: leave it out")
    return True


async def _stream(
    context: RequestContext, conversation_id: str, message: dict[str, Any] | None, slot: ExitStack
) -> Response:
    """Subscribe, then send the message, then stream: so nothing that the message causes is missed.

    The stream takes over the place in `slot`, and leaves it where it ends.
    """
    gateway, gate = context.gateway, context.gate
    cursor = _last_event_id(context)
    out = OutgoingFrames(gateway.settings.limits, owner_of(context.actor), gateway.budget)
    events = ChatEvents()
    stream = Stream(gate, gateway.hub, context.actor, gateway.metrics, out, context.authentication, events)
    key = execution_of(context.actor, conversation_id).key
    is_of_one_turn = message is not None or context.query(MESSAGE.name) is not None
    with slot.pop_all() as taken:
        taken.callback(out.discard)
        taken.callback(gateway.hub.forget, stream)
        taken.enter_context(gateway.shutdown.ends(out.close))
        channels = [f"executions:{conversation_id}"]
        also = () if is_of_one_turn else open_work(gate.live.cache, key)
        catching_up = await subscribe(gateway.hub, gate, stream, channels, cursor, also)
        known = gate.live.ring.last_offset_of(key, lane_of(partition_of(key, gate.partitions)))
        with ExitStack() as unused:
            if catching_up is not None:
                unused.callback(catching_up.close)
            if is_of_one_turn:
                after = None if catching_up is None or cursor is None else await _reached(context, cursor)
                turn = await _turn(context, conversation_id, message)
                if turn["ended_at_ms"] is not None and not await _continues(context, stream, after, key):
                    stream.resync(Resync.GONE)
                    return EventStream(stream, taken.pop_all(), None)
                stream.first = await begun(await past_of(context, turn, events, after, known, taken))
                if turn["ended_at_ms"] is not None:
                    # All that the reader wants is past.
                    return _ended(stream, taken)
            unused.pop_all()
        stream.behind = cursor if catching_up is not None else None
        return EventStream(stream, taken.pop_all(), catching_up)


def _ended(stream: Stream, taken: ExitStack) -> Response:
    """Return the past of a turn that is over; 204 if the reader has all of it, so that it does not come again."""
    return Response(status_code=204) if stream.first is None else EventStream(stream, taken.pop_all(), None)


async def _continues(context: RequestContext, stream: Stream, after: Vector | None, key: bytes) -> bool:
    """Return True if a reader comes anew, or its position in a conversation is of this log.

    Raises:
        Problem: 429 quota, too many of the subject's readers are catching up; 503 unavailable, too many of all are,
            or the log cannot be read.
    """
    gate = context.gate
    lane = lane_of(partition_of(key, gate.partitions))
    return after is None or await gate.catch_ups.is_of_this_log(stream, after, lane)


async def _reached(context: RequestContext, cursor: str) -> Vector:
    """Return the vector of a cursor, once this gateway has read that far, or `AHEAD_S` later."""
    live = context.gate.live
    vector = live.position.key.read(cursor)
    await live.reached(vector, AHEAD_S)
    return vector


async def _turn(context: RequestContext, conversation_id: str, message: dict[str, Any] | None) -> TurnRow:
    """Send the message, or find the one that the query names; return the turn that answers it."""
    gate = context.gate
    if message is not None:
        plan = await planned(
            gate,
            lambda: plan_message(gate, context.claims, conversation_id, lambda: message, context.key, ROUTE),
        )
        await context.priced(gate.perform(lambda: plan))
        subject = plan.subject
        assert subject is not None
    else:
        subject = subject_of(context.actor, conversation_id, context.query(MESSAGE.name) or "")
    row: TurnRow = await gate.reader.read(subject)
    return row
