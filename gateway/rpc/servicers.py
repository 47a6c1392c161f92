"""The services of `placet.human_input.v1`: calls and messages of gRPC over the gateway's REST API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.rpc.statuses import CODE
from gateway.rpc.upstream import Context, Refused, Upstream, refused
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from schemas.refusals import Refusal

TOOL = "human_input"
WAITING = "waiting_for_human"
ANSWERED = "answered"
# The longest that the gateway waits, and the time that is left for the way back before a deadline.
WAIT_MAX_S = 60.0
WAY_BACK_S = 0.25
# A stream asks anew after this long, so that a token that was withdrawn ends it.
WATCH_S = 20.0


class HumanInputTool(rpc.HumanInputToolServicer):
    """The tool itself."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def Run(self, request: pb.RunRequest, context: Context) -> pb.RunResponse:
        """Ask a person, and return a task id at once."""
        async with _refusing(context, request):
            result = await _run(self._upstream, context, {"prompt": request.prompt})
        return pb.RunResponse(status=result["status"], task_id=result["task_id"])


class HumanInput(rpc.HumanInputServicer):
    """What agents and people do with the tool's tasks."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def RunTool(self, request: pb.RunToolRequest, context: Context) -> pb.RunToolResponse:
        """Run the tool by its name."""
        async with _refusing(context, request):
            result = await _run(self._upstream, context, _arguments(request), request.name)
        response = pb.RunToolResponse()
        response.result.struct_value.update(result)
        return response

    async def ProvideHumanInput(
        self, request: pb.ProvideHumanInputRequest, context: Context
    ) -> pb.ProvideHumanInputResponse:
        """Answer a task, with a person's token."""
        async with _refusing(context, request):
            hold_id = await self._hold_of(context, request)
            decision = {"decision": "respond", "value": request.response}
            await self._upstream.ask(context, "POST", f"/v1/holds/{_id(hold_id)}/decision", decision)
        return pb.ProvideHumanInputResponse()

    async def GetHumanInput(
        self, request: pb.GetHumanInputRequest, context: Context
    ) -> pb.GetHumanInputResponse:
        """Return the answer to a task, or that nobody has answered yet."""
        async with _refusing(context, request):
            return await self._get(context, request.task_id, request.wait_seconds)

    async def WatchHumanInput(
        self, request: pb.WatchHumanInputRequest, context: Context
    ) -> AsyncIterator[pb.GetHumanInputResponse]:
        """Send the present state of a task, and its answer once it is there."""
        async with _refusing(context, request):
            found = await self._get(context, request.task_id, 0.0)
            yield found
            while found.status == WAITING:
                found = await self._get(context, request.task_id, WATCH_S)
                if found.status != WAITING:
                    yield found

    async def _hold_of(self, context: Context, request: pb.ProvideHumanInputRequest) -> str:
        """Return the hold of the task that a request answers.

        Raises:
            Refused: there is none, or several tasks have the id; or the gateway does not answer.
        """
        asked = f"holds/{_id(request.hold_id)}" if request.hold_id else f"requests/{_id(request.task_id)}"
        try:
            found = await self._upstream.ask(context, "GET", f"/v1/{asked}")
        except Refused as error:
            if request.hold_id and (CODE, str(Refusal.NOT_AUTHORISED)) in error.metadata:
                # Who may not read the hold may not decide it, either: that is said, and recorded, by the decider.
                return request.hold_id
            raise
        if found["request_id"] != request.task_id:
            raise refused(Refusal.NOT_FOUND, "the hold is not one of this task")
        return str(found["hold_id"])

    async def _get(self, context: Context, task_id: str, wait_s: float) -> pb.GetHumanInputResponse:
        seconds = _wait_s(context, wait_s)
        path = f"/v1/human-input/{_id(task_id)}?wait={seconds:.3f}"
        answer = await self._upstream.ask(context, "GET", path, wait_s=seconds)
        response = answer.get("response")
        status = answer.get("status", ANSWERED)
        return pb.GetHumanInputResponse(
            response=_text(response) if status == ANSWERED else "",
            status=status,
            feedback=answer.get("feedback") or "",
        )


@asynccontextmanager
async def _refusing(context: Context, request: Message) -> AsyncIterator[None]:
    """Turn a refusal within it into the status of the call, and refuse fields that this version does not know."""
    for name, number in _unknown_fields(request):
        context.set_trailing_metadata(((CODE, "invalid"),))
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"invalid: field {number} of {name} is unknown to this version"
        )
    try:
        yield
    except Refused as error:
        context.set_trailing_metadata(error.metadata)
        await context.abort(error.code, str(error))


def _unknown_fields(message: Message) -> Iterator[tuple[str, int]]:
    """The message's name and the number of each field that this version does not know, at any depth."""
    unknown = UnknownFieldSet(message)
    for place in range(len(unknown)):
        yield message.DESCRIPTOR.name, unknown[place].field_number
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for child in _children(field, value):
                yield from _unknown_fields(child)


def _children(field: FieldDescriptor, value: Any) -> Iterable[Message]:
    if isinstance(value, Message):
        return (value,)
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        value = value.values()
    return (child for child in value if isinstance(child, Message))


async def _run(upstream: Upstream, context: Context, arguments: Any, name: str = TOOL) -> dict[str, Any]:
    answer = await upstream.ask(context, "POST", "/v1/tools:run", {"name": name, "arguments": arguments})
    fields = answer["result"]["structValue"]["fields"]
    return {name: value["stringValue"] for name, value in fields.items()}


def _arguments(request: pb.RunToolRequest) -> Any:
    try:
        return MessageToDict(request.arguments)
    except ValueError as error:
        # protobuf's numbers can be NaN and infinite, JSON's cannot.
        raise refused(Refusal.MALFORMED, f"arguments: {error}") from error


def _wait_s(context: Context, asked_s: float) -> float:
    """How long the gateway may wait: no longer than until shortly before the call's deadline.

    Raises:
        Refused: it is not a number of seconds that may be asked for.
    """
    if not 0 <= asked_s <= WAIT_MAX_S:
        raise refused(Refusal.INVALID, f"wait_seconds must be seconds from 0 to {WAIT_MAX_S:g}")
    left_s = context.time_remaining()
    # A call without a deadline has some centuries left, or None, by the version of grpc.
    bounded = WAIT_MAX_S if left_s is None else min(left_s - WAY_BACK_S, WAIT_MAX_S)
    return max(0.0, min(asked_s, bounded))


def _id(task_id: str) -> str:
    return quote(task_id, safe="")


def _text(response: Any) -> str:
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
