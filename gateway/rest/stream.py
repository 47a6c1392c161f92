"""/v1/events/stream: the messages of the WebSocket as server-sent events."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response, StreamingResponse

from gateway.rest.documented import operation
from gateway.rest.parameters import LAST_EVENT_ID, Choice, Parameter
from gateway.rest.request_context import RequestContext, context_of
from gateway.shares.work import owner_of
from gateway.sockets.outgoing import OutgoingFrames
from gateway.sockets.sse import EventStream, Stream
from gateway.sockets.subscriptions import subscribe

router = APIRouter(prefix="/v1/events", tags=["events"])
Context = Annotated[RequestContext, Depends(context_of)]
FROM = Parameter(
    "cursor",
    "The cursor of a message: the stream continues after it, as with `Last-Event-ID`. `earliest`: it begins with the "
    "first message.",
)
FOLLOW = Choice(
    "follow",
    "`true`, also if it is left out: the stream has no end. `false`: it ends with the message `caught_up`, once "
    "everything was sent that the log had at the request.",
    choices=("true", "false"),
)
CHANNELS = Parameter(
    "channels", "Channels as on the WebSocket, separated by commas; `events` if it is left out."
)


@router.get(
    "/stream",
    operation_id="streamEvents",
    response_class=Response,
    **operation(
        {200: {"description": "Messages of the WebSocket protocol", "content": {"text/event-stream": {}}}},
        404,
        parameters=(CHANNELS, FROM, FOLLOW, LAST_EVENT_ID),
    ),
)
async def stream(context: Context) -> Response:
    """Stream the messages of some channels as they are published; `Last-Event-ID` continues from a cursor."""
    return await stream_events(context)


async def stream_events(context: RequestContext) -> StreamingResponse:
    """Stream the messages of the channels in the query, from the cursor of `Last-Event-ID` or `cursor` on.

    Raises:
        Problem: a channel or cursor does not exist, or this reader may not use it; 429, the subject has the maximum
            number of sockets and streams open; 503, the log cannot be read to its present end.
    """
    gateway = context.gateway
    follows = context.one_of(FOLLOW) != "false"
    channels = (context.query("channels") or "events").split(",")
    last_event_id = context.request.headers.get(LAST_EVENT_ID.name)
    cursor = last_event_id or context.query(FROM.name)
    out = OutgoingFrames(gateway.settings.limits, owner_of(context.actor), gateway.budget)
    stream = Stream(context.gate, gateway.hub, context.actor, gateway.metrics, out, context.authentication)
    stream.cursor_name = LAST_EVENT_ID.name if last_event_id else FROM.name
    with ExitStack() as taken:
        taken.enter_context(gateway.socket_limit.open(context.actor))
        taken.callback(out.discard)
        taken.enter_context(gateway.shutdown.ends(out.close))
        if not follows:
            # Asks Kafka for the log's end, so it is within the limit of one subject's sockets and streams.
            await context.gate.reader.all_caught_up()
        catching_up = await subscribe(gateway.hub, context.gate, stream, channels, cursor)
        stream.behind = cursor if catching_up is not None else None
        return EventStream(stream, taken.pop_all(), catching_up, follows=follows)
