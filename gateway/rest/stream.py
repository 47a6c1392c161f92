"""/v1/events/stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway.rest.documented import answers, documented
from gateway.rest.door import Door, door_of
from gateway.rest.parameters import CURSOR, LAST_EVENT_ID, Parameter
from gateway.sockets.sse import stream_events

router = APIRouter(prefix="/v1/events", tags=["events"])
AtDoor = Annotated[Door, Depends(door_of)]
CHANNELS = Parameter("channels", "Channels by comma, as of the WebSocket; events where it is left out.")


@router.get(
    "/stream",
    operation_id="streamEvents",
    response_class=Response,
    responses=answers({}, 403, 404, 422)
    | {200: {"description": "Messages of the WebSocket protocol", "content": {"text/event-stream": {}}}},
    openapi_extra=documented(parameters=(CHANNELS, CURSOR, LAST_EVENT_ID)),
)
async def stream(door: AtDoor) -> Response:
    """The messages of some channels, as they come; `Last-Event-ID` goes on from a cursor."""
    return await stream_events(door)
