"""Each way in names its own fields: a refusal tells what was sent, by the word by which it was sent."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import grpc
import pytest

from schemas.human_input.v1 import human_input_pb2 as pb
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sealed import DEFINITION, PLAIN, TOOL, answered, asked, decided, proposed
from tests.gateway.test_grpc_answers_live import value_of
from tests.gateway.test_grpc_live import by, refused, stubs_on
from tests.gateway.test_human_bridge_live import bridge_of

pytestmark = [pytest.mark.stack, pytest.mark.broker]

WHERE_THEN = "variables are not answered here: use POST /v1/holds/{hold_id}/decision, which seals them"


def twice(bot: Caller, request_id: str) -> list[dict[str, Any]]:
    """A question of the same id in two executions."""
    body = {"request_id": request_id, "question": "Which IBAN?"}
    return [bot.post("/v1/requests", {**body, "execution_id": bot.execution()}).json() for _ in range(2)]


async def test_id_of_several_questions_is_told_apart_by_the_field_of_each_way_in(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    request_id = f"iban-{uuid4().hex[:10]}"
    one, other = twice(bot, request_id)
    word = {"request_id": request_id, "response": "DE1"}
    details = {
        "execution_id": bot.get(f"/v1/requests/{request_id}"),
        "conversation_id": anna.post("/agent/hitl/respond", word),
        "human-input": bot.get(f"/v1/human-input/{request_id}"),
    }
    assert {answer.json()["code"] for answer in details.values()} == {"id_reused"}
    named = {name: answer.json()["detail"].rpartition(" ")[2] for name, answer in details.items()}
    assert named == {
        "execution_id": "execution_id",
        "conversation_id": "conversation_id",
        "human-input": "execution_id",
    }
    answer = anna.post("/agent/hitl/respond", {**word, "conversation_id": one["execution_id"]})
    assert answer.status_code == 200, answer.text
    give = "several questions have this task_id: give the hold_id, too"
    async with grpc.aio.insecure_channel(doors.stack.status()["grpc_address"]) as channel:
        tasks = stubs_on(channel).tasks
        provide = pb.ProvideHumanInputRequest(task_id=request_id, response="DE2")
        assert (await refused(tasks.ProvideHumanInput(provide, metadata=by(anna))))[1] == f"id_reused: {give}"
        get = pb.GetHumanInputRequest(task_id=request_id)
        said = (await refused(tasks.GetHumanInput(get, metadata=by(bot))))[1]
        assert said.endswith("GET /v1/human-input/{task_id} with the query execution_id")
        provide.hold_id = other["hold_id"]
        await tasks.ProvideHumanInput(provide, metadata=by(anna))
    async with bridge_of(anna) as person:
        await person.send(type="answer", task_id=request_id, response="DE3")
        assert (await person.next("error", task_id=request_id))["detail"] == give


@pytest.mark.parametrize(
    "message", [" ", "\n\u00a0", "\u200b", "x" * 16_385], ids=["blank", "no-break", "unseen", "longer"]
)
def test_message_that_is_refused_is_named_as_it_was_sent(doors: Doors, bot: Caller, message: str) -> None:
    answer = bot.post("/agent/chat", {"message": message})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("message")
    sent = bot.post(f"/v1/executions/{bot.execution()}/messages", {"text": message})
    assert sent.json()["detail"].startswith("text")


def test_answer_that_is_too_large_is_named_as_it_was_sent(bot: Caller, anna: Caller) -> None:
    hold = bot.post("/v1/requests", {"question": "Which?"}).json()
    large = ["x" * 1_000] * 300
    respond = anna.post("/agent/hitl/respond", {"request_id": hold["request_id"], "response": large})
    decide = answered(anna, hold, large)
    found = {name: answer.json() for name, answer in (("response", respond), ("value", decide))}
    assert {name: (said["code"], said["detail"].split()[0]) for name, said in found.items()} == {
        name: ("too_large", name) for name in found
    }


@pytest.mark.parametrize(
    ("answer", "path"),
    [({"REGION": "mars", "KEY": "x"}, ".REGION"), ({"KEY": "x"}, ""), ("eu-1", "")],
    ids=str,
)
def test_variable_that_does_not_fit_is_named_in_the_field_that_was_sent(
    bot: Caller, anna: Caller, answer: Any, path: str
) -> None:
    request = asked(bot, "KEY", {"name": "REGION", "pattern": "^eu-"})  # type: ignore[arg-type]
    word = {"request_id": request["request_id"], "response": answer}
    told = {
        "response": anna.post("/agent/hitl/respond", word).json(),
        "value": answered(anna, request, answer).json(),
    }
    for field, said in told.items():
        assert said["code"] == "invalid_arguments"
        assert [error["path"] for error in said["errors"]] == [f"{field}{path}"]
        assert said["detail"] == f"{field}{path}: {said['errors'][0]['message']}"
        assert "mars" not in str(said)


def test_sensitive_argument_that_does_not_fit_is_named_in_the_field_that_was_sent(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    assert doors.caller("olga", "operator").call("PUT", f"/v1/tools/{TOOL}", DEFINITION).status_code == 200
    call, short = proposed(bot), {**PLAIN, "token": "abc"}
    path = f"/v1/executions/{call['execution_id']}/tool-calls?wait=0"
    again = bot.post(path, {"call_id": f"c-{uuid4().hex[:12]}", "tool": TOOL, "arguments": short}).json()
    assert [error["path"] for error in again["errors"]] == ["arguments.token"]
    for wrong, of in ((short, ".token"), ({**PLAIN, "to": 5}, ".to")):
        edit = decided(anna, call, "edit", edited_arguments=wrong).json()
        assert [error["path"] for error in edit["errors"]] == [f"edited_arguments{of}"]
        assert edit["detail"].startswith(f"edited_arguments{of}: ")


@pytest.mark.parametrize("response", ["eu-1", {"KEY": "x"}], ids=["text", "object"])
async def test_variables_that_are_not_answered_here_are_said_so_at_once(
    doors: Doors, bot: Caller, anna: Caller, response: Any
) -> None:
    request = asked(bot, "KEY")
    task_id, code = request["request_id"], "invalid" if isinstance(response, dict) else "invalid_arguments"
    more = {"response": response} if isinstance(response, str) else {"value": value_of(response)}
    async with grpc.aio.insecure_channel(doors.stack.status()["grpc_address"]) as channel:
        tasks = stubs_on(channel).tasks
        for hold_id in ("", request["hold_id"]):
            provide = pb.ProvideHumanInputRequest(task_id=task_id, hold_id=hold_id, **more)
            _, detail, own = await refused(tasks.ProvideHumanInput(provide, metadata=by(anna)))
            assert (detail, own) == (f"{code}: {WHERE_THEN}", code)
    async with bridge_of(anna) as person:
        for named in ({}, {"hold_id": request["hold_id"]}):
            await person.send(type="answer", task_id=task_id, response=response, **named)
            error = await person.next("error", task_id=task_id)
            assert (error["detail"], error["code"]) == (WHERE_THEN, code)
    shown = await asyncio.to_thread(bot.get, f"/v1/requests/{task_id}")
    assert shown.json()["status"] == "open"
