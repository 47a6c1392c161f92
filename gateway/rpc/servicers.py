"""The services of `placet.human_input.v1`: calls and messages of gRPC over the gateway's REST API."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from google.protobuf.json_format import MessageToDict, ParseDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value

from gateway.operations.human_input import SEVERAL, check_no_variables
from gateway.problems import Problem
from gateway.resources.human_input import answer_of
from gateway.rest.parameters import WAIT_MAX_S
from gateway.rpc.long_messages import LongMessages
from gateway.rpc.metadata import Context
from gateway.rpc.upstream import Refused, Upstream
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from schemas.ids import ID_RULE, is_client_id
from schemas.refusals import Refusal

TOOL = "human_input"
WAITING = "waiting_for_human"
ANSWERED = "answered"
# The time that is left for the way back before a deadline.
WAY_BACK_S = 0.25
# A stream asks anew after this long, so that a token that was withdrawn ends it.
WATCH_S = 20.0
# protobuf reads 100 messages inside one another, of which an object of JSON takes three.
VALUE_DEPTH_MAX = 30
# The messages that read have no field for the execution.
_SEVERAL_TO_READ = (
    "several executions have a task with this task_id: "
    "read it by GET /v1/human-input/{task_id} with the query execution_id"
)
_AS_THEY_ARE: Mapping[str, str] = {}
# And no sooner than this, if it was answered that nobody has decided.
ASK_EVERY_S = 1.0
# Proxies cut a stream off after 60 s without anything on it: the state is told again, no more often than this.
TELL_AGAIN_S = 15.0


class HumanInputTool(rpc.HumanInputToolServicer):
    """The tool itself."""

    def __init__(self, upstream: Upstream, long_messages: LongMessages) -> None:
        self._upstream = upstream
        self._messages = long_messages

    async def Run(self, request: pb.RunRequest, context: Context) -> pb.RunResponse:
        """Ask a person, and return a task id at once."""
        prompt = await self._messages.read(request, lambda run: run.prompt)
        named = {"arguments.prompt": "prompt"}
        result = await _run(self._upstream, context, {"prompt": prompt}, names=named)
        return pb.RunResponse(status=result["status"], task_id=result["task_id"])


class HumanInput(rpc.HumanInputServicer):
    """What agents and people do with the tool's tasks."""

    def __init__(self, upstream: Upstream, long_messages: LongMessages) -> None:
        self._upstream = upstream
        self._messages = long_messages

    async def RunTool(self, request: pb.RunToolRequest, context: Context) -> pb.RunToolResponse:
        """Run the tool by its name."""
        arguments = await self._messages.read(request, lambda run: _json(run.arguments, "arguments"))
        result = await _run(self._upstream, context, arguments, request.name)
        response = pb.RunToolResponse()
        response.result.struct_value.update(result)
        return response

    async def ProvideHumanInput(
        self, request: pb.ProvideHumanInputRequest, context: Context
    ) -> pb.ProvideHumanInputResponse:
        """Answer a task, with a person's token."""
        said = await self._messages.read(request, _answer)
        hold_id = await self._hold_of(context, request, said)
        names = {} if request.HasField("value") else {"value": "response"}
        decision = answer_of(said, request.feedback)
        await self._upstream.ask(context, "POST", f"/v1/holds/{hold_id}/decision", decision, names=names)
        return pb.ProvideHumanInputResponse()

    async def GetHumanInput(
        self, request: pb.GetHumanInputRequest, context: Context
    ) -> pb.GetHumanInputResponse:
        """Return the answer to a task, or that nobody has answered yet."""
        await self._messages.read(request, _nothing)
        return await self._get(context, request.task_id, request.wait_seconds)

    async def WatchHumanInput(
        self, request: pb.WatchHumanInputRequest, context: Context
    ) -> AsyncIterator[pb.GetHumanInputResponse]:
        """Send the present state of a task, again while nobody has answered, and its answer once it is there."""
        await self._messages.read(request, _nothing)
        found = await self._get(context, request.task_id, 0.0)
        yield found
        told_at = time.monotonic()
        while found.status == WAITING:
            again_at = time.monotonic() + ASK_EVERY_S
            found = await self._get(context, request.task_id, WATCH_S)
            if found.status != WAITING or time.monotonic() >= told_at + TELL_AGAIN_S:
                yield found
                told_at = time.monotonic()
            else:
                # Shortly before the deadline, and while the gateway stops, it is answered at once.
                await asyncio.sleep(max(0.0, again_at - time.monotonic()))

    async def _hold_of(self, context: Context, request: pb.ProvideHumanInputRequest, said: Any) -> str:
        """Return the hold of the task that a request answers.

        Raises:
            Problem: an id that is none or of several tasks, or the hold is not one of the task, or variables would be
                answered.
            Refused: there is none; or the gateway does not answer.
        """
        task = f"requests/{_id(request.task_id, 'task_id')}"
        asked = f"holds/{_id(request.hold_id, 'hold_id')}" if request.hold_id else task
        try:
            found = await self._upstream.ask(context, "GET", f"/v1/{asked}")
        except Refused as error:
            if error.says(Refusal.ID_REUSED):
                raise Problem(Refusal.ID_REUSED, SEVERAL) from error
            if request.hold_id and error.says(Refusal.NOT_AUTHORISED):
                # Who may not read the hold may not decide it, either: that is said, and recorded, by the decider.
                return request.hold_id
            raise
        # The hold of a call is of no request.
        if found.get("request_id") != request.task_id:
            raise Problem(Refusal.NOT_FOUND, "the hold is not one of this task")
        check_no_variables(found["kind"], said)
        return str(found["hold_id"])

    async def _get(self, context: Context, task_id: str, wait_s: float) -> pb.GetHumanInputResponse:
        seconds = _wait_s(context, wait_s)
        path = f"/v1/human-input/{_id(task_id, 'task_id')}?wait={seconds:.3f}"
        try:
            answer = await self._upstream.ask(context, "GET", path, wait_s=seconds)
        except Refused as error:
            if error.says(Refusal.ID_REUSED):
                raise Problem(Refusal.ID_REUSED, _SEVERAL_TO_READ) from error
            raise
        status = answer.get("status", ANSWERED)
        got = pb.GetHumanInputResponse(status=status, feedback=answer.get("feedback") or "")
        response = answer.get("response")
        # A default that took effect comes with the status `expired`.
        if status == ANSWERED or response is not None:
            got.response = _text(response)
            if _depth(response) <= VALUE_DEPTH_MAX:
                await self._messages.of_size(len(got.response), lambda: ParseDict(response, got.value))
        return got


def waits(request: Message) -> bool:
    """Return True for the message of a call that waits for a person."""
    if isinstance(request, pb.GetHumanInputRequest):
        return request.wait_seconds > 0
    return isinstance(request, pb.WatchHumanInputRequest)


async def _run(
    upstream: Upstream,
    context: Context,
    arguments: Any,
    name: str = TOOL,
    names: Mapping[str, str] = _AS_THEY_ARE,
) -> dict[str, Any]:
    body = {"name": name, "arguments": arguments}
    answer = await upstream.ask(context, "POST", "/v1/tools:run", body, names=names)
    fields = answer["result"]["structValue"]["fields"]
    return {name: value["stringValue"] for name, value in fields.items()}


def _nothing(request: Message) -> None:
    return


def _answer(request: pb.ProvideHumanInputRequest) -> Any:
    """The JSON of an answer; None rejects the question.

    Raises:
        Problem: there are two, or it is no JSON.
    """
    if not request.HasField("value"):
        return request.response
    if request.response:
        raise Problem(Refusal.INVALID, "response and value: give one of them")
    if request.value.WhichOneof("kind") is None:
        raise Problem(Refusal.INVALID, "value: it has no kind: give null_value to reject the question")
    return _json(request.value, "value")


def _json(message: Value | Struct, name: str) -> Any:
    if _has_kindless(message):
        raise Problem(Refusal.MALFORMED, f"{name}: a value in it has no kind: give null_value for null")
    try:
        return MessageToDict(message)
    except (ValueError, SerializeToJsonError) as error:
        # protobuf's numbers can be NaN and infinite; JSON's cannot.
        raise Problem(Refusal.MALFORMED, f"{name}: {error}") from error


def _has_kindless(message: Value | Struct) -> bool:
    """Whether a value in it has no kind, which protobuf's JSON would make null."""
    pending = [message] if isinstance(message, Value) else [*message.fields.values()]
    while pending:
        one = pending.pop()
        kind = one.WhichOneof("kind")
        if kind is None:
            return True
        if kind == "list_value":
            pending += one.list_value.values
        elif kind == "struct_value":
            pending += one.struct_value.fields.values()
    return False


def _depth(value: Any) -> int:
    """How many lists and objects are inside one another at most."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0)


def _wait_s(context: Context, asked_s: float) -> float:
    """How long the gateway may wait: no longer than until shortly before the call's deadline.

    Raises:
        Problem: it is not a number of seconds that may be asked for.
    """
    if not 0 <= asked_s <= WAIT_MAX_S:
        raise Problem(Refusal.INVALID, f"wait_seconds must be seconds from 0 to {WAIT_MAX_S:g}")
    left_s = context.time_remaining()
    # A call without a deadline has some centuries left, or None, by the version of grpc.
    bounded = WAIT_MAX_S if left_s is None else min(left_s - WAY_BACK_S, WAIT_MAX_S)
    return max(0.0, min(asked_s, bounded))


def _id(text: str, name: str) -> str:
    """Return an id as a segment of a path: it names nothing else there, whatever its text.

    Raises:
        Problem: it is no id that anything could have.
    """
    if not is_client_id(text):
        raise Problem(Refusal.INVALID, f"{name} {ID_RULE}")
    return quote(text, safe="")


def _text(response: Any) -> str:
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
