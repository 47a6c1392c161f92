"""Answers over gRPC: any JSON, shown as it is; and refusals in the words of the messages."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict

from schemas.human_input.v1 import human_input_pb2 as pb
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_grpc_live import PROMPT, Code, Stubs, by, refused, stubs_on

pytestmark = [pytest.mark.stack, pytest.mark.broker]

VALUES: dict[str, tuple[dict[str, Any], Any]] = {
    "permission": ({"kind": "permission", "tool": "shell"}, True),
    "permission to remember": (
        {"kind": "permission", "remember": True},
        {"granted": True, "remember": False},
    ),
    "number": ({"kind": "decision", "options": [1, 2.5]}, 1),
    "several": ({"kind": "decision", "options": ["a", 2], "multiple": True}, ["a", 2]),
    "text of a boolean": ({}, "true"),
}


@pytest.fixture
async def stubs(doors: Doors) -> AsyncIterator[Stubs]:
    async with grpc.aio.insecure_channel(doors.stack.status()["grpc_address"]) as channel:
        yield stubs_on(channel)


def value_of(value: Any) -> struct_pb2.Value:
    return ParseDict(value, struct_pb2.Value())


@pytest.mark.parametrize(("question", "value"), VALUES.values(), ids=list(VALUES))
async def test_answer_is_any_json_and_is_shown_as_it_is(
    stubs: Stubs, bot: Caller, anna: Caller, question: dict[str, Any], value: Any
) -> None:
    task_id = f"task-{uuid4().hex[:12]}"
    bot.post("/v1/requests", {"request_id": task_id, "question": "Go on?", **question})
    answer = pb.ProvideHumanInputRequest(task_id=task_id, value=value_of(value))
    for _ in range(2):
        await stubs.tasks.ProvideHumanInput(answer, metadata=by(anna))
    other = pb.ProvideHumanInputRequest(task_id=task_id, value=value_of(None))
    assert (await refused(stubs.tasks.ProvideHumanInput(other, metadata=by(anna))))[2] == "already_decided"
    asked = pb.GetHumanInputRequest(task_id=task_id, wait_seconds=5)
    found = await stubs.tasks.GetHumanInput(asked, metadata=by(bot))
    assert MessageToDict(found.value) == value
    assert found.response == (value if isinstance(value, str) else json.dumps(value))
    watching = stubs.tasks.WatchHumanInput(pb.WatchHumanInputRequest(task_id=task_id), metadata=by(bot))
    assert [MessageToDict(state.value) async for state in watching] == [value]
    assert bot.get(f"/v1/human-input/{task_id}").json() == {"response": value}


async def test_null_value_rejects_a_question_with_feedback(stubs: Stubs, bot: Caller, anna: Caller) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt=PROMPT), metadata=by(bot))
    answer = pb.ProvideHumanInputRequest(task_id=run.task_id, value=value_of(None), feedback="ask the owner")
    await stubs.tasks.ProvideHumanInput(answer, metadata=by(anna))
    asked = pb.GetHumanInputRequest(task_id=run.task_id, wait_seconds=5)
    found = await stubs.tasks.GetHumanInput(asked, metadata=by(bot))
    assert (found.status, found.feedback, found.HasField("value")) == ("rejected", "ask the owner", False)


async def test_default_that_took_effect_is_fetched_as_its_answer_by_each_door(
    stubs: Stubs, bot: Caller
) -> None:
    question = {"kind": "decision", "question": "Which?", "options": ["red", "green"], "default": "green"}
    task_id = bot.post("/v1/requests", {**question, "timeout_seconds": 1}).json()["request_id"]
    asked = pb.GetHumanInputRequest(task_id=task_id, wait_seconds=20)
    found = await stubs.tasks.GetHumanInput(asked, metadata=by(bot))
    assert (found.status, found.response, found.value.string_value) == ("expired", "green", "green")
    assert bot.get(f"/v1/human-input/{task_id}").json() == {
        "response": "green",
        "status": "expired",
        "feedback": None,
    }


async def test_answer_too_deep_for_a_value_is_shown_as_text(stubs: Stubs, bot: Caller, anna: Caller) -> None:
    for depth, has_value in ((30, True), (31, False)):
        run = await stubs.tool.Run(pb.RunRequest(prompt=PROMPT), metadata=by(bot))
        deep: Any = 1
        for _ in range(depth):
            deep = {"a": deep}
        anna.post("/agent/hitl/respond", {"request_id": run.task_id, "response": deep})
        asked = pb.GetHumanInputRequest(task_id=run.task_id, wait_seconds=5)
        found = await stubs.tasks.GetHumanInput(asked, metadata=by(bot))
        assert (json.loads(found.response), found.HasField("value")) == (deep, has_value)


async def test_refusal_of_an_answer_names_the_fields_of_its_message(
    stubs: Stubs, bot: Caller, anna: Caller
) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt=PROMPT), metadata=by(bot))
    sealed = {"question": "The key?", "kind": "env_var", "fields": ["KEY"]}
    variables = bot.post("/v1/requests", sealed).json()["request_id"]
    kindless = struct_pb2.Value()
    kindless.struct_value.fields["a"].list_value.values.add()
    wrong: dict[str, dict[str, Any]] = {
        "invalid: response and value: give one of them": {"response": "x", "value": value_of("x")},
        "invalid: value: it has no kind": {"value": struct_pb2.Value()},
        "malformed: value: ": {"value": struct_pb2.Value(number_value=math.inf)},
        "malformed: value: a value in it has no kind": {"value": kindless},
        "too_large: response is over": {"response": "x" * 300_000},
        "too_large: value is over": {"value": value_of("x" * 300_000)},
        "invalid: variables are not answered here": {"task_id": variables, "value": value_of({"KEY": "x"})},
    }
    for said, fields in wrong.items():
        answer = pb.ProvideHumanInputRequest(**{"task_id": run.task_id, **fields})
        code, detail, _ = await refused(stubs.tasks.ProvideHumanInput(answer, metadata=by(anna)))
        assert (code, detail[: len(said)]) == (Code.INVALID_ARGUMENT, said)


@pytest.mark.parametrize("prompt", ["", " ", "x" * 16_385])
async def test_refusal_of_a_prompt_names_the_field_of_each_door(
    stubs: Stubs, bot: Caller, prompt: str
) -> None:
    _, detail, _ = await refused(stubs.tool.Run(pb.RunRequest(prompt=prompt), metadata=by(bot)))
    assert detail.startswith("invalid: prompt")
    named = pb.RunToolRequest(name="human_input")
    named.arguments.update({"prompt": prompt})
    _, detail, _ = await refused(stubs.tasks.RunTool(named, metadata=by(bot)))
    assert detail.startswith("invalid: arguments.prompt")
    body = {"name": "human_input", "arguments": {"prompt": prompt}}
    assert bot.post("/v1/tools:run", body).json()["detail"].startswith("arguments.prompt")
