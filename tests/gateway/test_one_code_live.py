"""A refusal has the same code in every API: the same answer, and the same question, at every door of a question.

A door that takes the id of the task finds only what its caller may see; one that takes the hold asks the decider. So
a case has a code for each of the two, and every door of a kind must answer it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import grpc
import httpx
import pytest

from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from schemas.limits import TEXT_MAX_CHARS
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import event_types
from tests.gateway.sockets import open_socket
from tests.gateway.test_human_bridge_live import bridge_of
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

ACCEPTED = ""
# The refusals of the decider, each of which is in the log; the others are the gateway's.
RECORDED = {
    "already_decided",
    "expired",
    "execution_closed",
    "invalid",
    "unknown_option",
    "forbidden_role",
    "own_request",
}
YES, NO = "yes", "no"


People = Mapping[str, Caller]


class Question(NamedTuple):
    """A question, as the doors name it."""

    task_id: str
    hold_id: str
    execution_id: str


class Gate(NamedTuple):
    """Somebody at the doors of a stack."""

    doors: Doors
    caller: Caller


def code_of(answer: httpx.Response) -> str:
    return ACCEPTED if answer.is_success else str(answer.json()["code"])


async def grpc_code(gate: Gate, call: Callable[[Any, Any], Awaitable[Any]]) -> str:
    """The code of a call of the services, each given the channel and the metadata."""
    metadata = (("authorization", f"Bearer {gate.caller.token}"),)
    async with grpc.aio.insecure_channel(gate.doors.stack.status()["grpc_address"]) as channel:
        try:
            await call(channel, metadata)
        except grpc.aio.AioRpcError as error:
            return str(dict(error.trailing_metadata() or ())["placet-code"])
    return ACCEPTED


# Answering.


async def respond(gate: Gate, asked: Question, response: str, **more: str) -> str:
    body = {"request_id": asked.task_id, "response": response, **more}
    return code_of(gate.caller.post("/agent/hitl/respond", body))


async def respond_in_conversation(gate: Gate, asked: Question, response: str) -> str:
    return await respond(gate, asked, response, conversation_id=asked.execution_id)


async def decide(gate: Gate, asked: Question, response: str) -> str:
    word = {"decision": "respond", "value": response}
    return code_of(gate.caller.post(f"/v1/holds/{asked.hold_id}/decision", word))


async def decide_on_socket(gate: Gate, asked: Question, response: str) -> str:
    async with open_socket(gate.doors.url, gate.caller.token) as socket:
        # Without a ref, which would be its idempotency key: the other doors are given none, either.
        await socket.send(type="decision", hold_id=asked.hold_id, decision="respond", value=response)
        told = await socket.receive()
    return ACCEPTED if told["type"] == "reply" else str(told["code"])


async def answer_on_bridge(gate: Gate, asked: Question, response: str, **more: str) -> str:
    async with bridge_of(gate.caller) as bridge:
        await bridge.send(type="answer", task_id=asked.task_id, response=response, **more)
        told = await bridge.next_of("answered", "error", task_id=asked.task_id)
    return ACCEPTED if told["type"] == "answered" else str(told["code"])


async def answer_hold_on_bridge(gate: Gate, asked: Question, response: str) -> str:
    return await answer_on_bridge(gate, asked, response, hold_id=asked.hold_id)


async def provide(gate: Gate, asked: Question, response: str, hold_id: str = "") -> str:
    request = pb.ProvideHumanInputRequest(task_id=asked.task_id, response=response, hold_id=hold_id)
    return await grpc_code(
        gate,
        lambda channel, metadata: rpc.HumanInputStub(channel).ProvideHumanInput(request, metadata=metadata),
    )


async def provide_hold(gate: Gate, asked: Question, response: str) -> str:
    return await provide(gate, asked, response, hold_id=asked.hold_id)


Answer = Callable[[Gate, Question, str], Awaitable[str]]
BY_TASK: Mapping[str, Answer] = {
    "REST, respond": respond,
    "the bridge": answer_on_bridge,
    "gRPC": provide,
}
BY_HOLD: Mapping[str, Answer] = {
    "REST, decision": decide,
    "REST, respond in its conversation": respond_in_conversation,
    "the socket": decide_on_socket,
    "the bridge, by its hold": answer_hold_on_bridge,
    "gRPC, by its hold": provide_hold,
}


def fresh() -> str:
    return f"task-{uuid4().hex[:12]}"


def asked(asker: Caller, task_id: str | None = None, **more: Any) -> Question:
    body = {"request_id": task_id or fresh(), "question": "Go on?", **more}
    answer = asker.post("/v1/requests", body)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    return Question(found["request_id"], found["hold_id"], found["execution_id"])


def closed(people: People) -> Question:
    found = asked(people["bot"])
    word = {"decision": "respond", "value": YES}
    answer = people["rita"].post(f"/v1/holds/{found.hold_id}/decision", word)
    assert answer.status_code == 200, answer.text
    return found


def expired(people: People) -> Question:
    found = asked(people["bot"], timeout_seconds=0.2)
    answer = people["bot"].get(f"/v1/requests/{found.task_id}?wait=20")
    assert answer.json()["status"] == "expired", answer.text
    return found


def cancelled(people: People) -> Question:
    found = asked(people["bot"])
    assert people["bot"].post(f"/v1/executions/{found.execution_id}/cancel", {}).status_code == 200
    return found


def with_options(people: People) -> Question:
    return asked(people["bot"], kind="decision", options=["a", "b"])


def variables(people: People) -> Question:
    return asked(people["bot"], kind="env_var", fields=["KEY"])


def unknown(people: People) -> Question:
    return Question(fresh(), fresh(), fresh())


def own_permission(people: People) -> Question:
    return asked(people["olga"], kind="permission", agent="billing")


def open_question(people: People) -> Question:
    return asked(people["bot"])


def check_recorded(person: Caller, question: Question) -> None:
    """One refused answer of a question is in the log."""
    told = wait_for(
        lambda: event_types(person, question.execution_id), lambda types: "DecisionRefused" in types
    )
    assert told.count("DecisionRefused") == 1


Ask = Callable[[People], Question]


class Case(NamedTuple):
    """An answer that somebody gives to a question.

    Attributes:
        ask: makes the question.
        who: answers it.
        by_task: the code where the task is named.
        by_hold: the code where the hold is named.
    """

    ask: Ask
    who: str
    by_task: str
    by_hold: str
    response: str = YES


CASES = {
    "open": Case(open_question, "rob", ACCEPTED, ACCEPTED),
    "answered by another": Case(closed, "rob", "already_decided", "already_decided"),
    "the same answer again": Case(closed, "rita", ACCEPTED, ACCEPTED),
    "another answer": Case(closed, "rita", "already_decided", "already_decided", NO),
    "expired": Case(expired, "rob", "expired", "expired"),
    "cancelled": Case(cancelled, "rob", "execution_closed", "execution_closed"),
    "nothing said": Case(open_question, "rob", "invalid", "invalid", " "),
    "no option": Case(with_options, "rob", "unknown_option", "unknown_option", "c"),
    "a text for variables": Case(variables, "rob", "invalid_arguments", "invalid_arguments"),
    "one's own permission": Case(own_permission, "olga", "own_request", "own_request", response="true"),
    "without the role": Case(open_question, "ada", "forbidden_role", "forbidden_role"),
    "without a sight of it": Case(open_question, "theo", "not_found", "forbidden_role"),
    "its own": Case(open_question, "bot", "not_authorised", "not_authorised"),
    "its own, closed": Case(closed, "bot", "not_authorised", "not_authorised"),
    "another agent's": Case(open_question, "mailer", "not_found", "not_authorised"),
    "another agent's, closed": Case(closed, "mailer", "not_found", "not_authorised"),
    "another tenant's": Case(open_question, "stranger", "not_found", "not_found"),
    "another tenant's, closed": Case(closed, "stranger", "not_found", "not_found"),
    "another tenant's agent's": Case(open_question, "strange bot", "not_found", "not_found"),
    "unknown": Case(unknown, "rob", "not_found", "not_found"),
    "unknown to its agent": Case(unknown, "bot", "not_found", "not_found"),
}


@pytest.fixture
def people(doors: Doors, bot: Caller) -> People:
    return {
        "bot": bot,
        "rob": doors.caller("rob", "reviewer"),
        "rita": doors.caller("rita", "reviewer"),
        "olga": doors.caller("olga", "operator", "reviewer"),
        "ada": doors.caller("ada", "analyst"),
        "theo": doors.caller("theo", "treasurer"),
        "mailer": doors.caller("mailer", "agent", agent="mailer"),
        "stranger": doors.caller("sam", "reviewer", tenant="other"),
        "strange bot": doors.caller("bot", "agent", agent="billing", tenant="other"),
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_answer_is_taken_or_refused_alike_by_every_door(
    doors: Doors, people: People, case: Case
) -> None:
    gate, rita = Gate(doors, people[case.who]), people["rita"]
    found, expected = {}, {}
    for named, code in ((BY_TASK, case.by_task), (BY_HOLD, case.by_hold)):
        for name, answer in named.items():
            question = case.ask(people)
            found[name], expected[name] = await answer(gate, question, case.response), code
            if found[name] in RECORDED:
                await asyncio.to_thread(check_recorded, rita, question)
    assert found == expected


async def test_id_that_two_agents_chose_is_answered_by_the_hold_alone(doors: Doors, people: People) -> None:
    gate, codes = Gate(doors, people["rob"]), {}
    for name, answer in {**BY_TASK, **BY_HOLD}.items():
        mine = asked(people["bot"])
        asked(people["mailer"], mine.task_id)
        codes[name] = await answer(gate, mine, YES)
    assert codes == {**dict.fromkeys(BY_TASK, "id_reused"), **dict.fromkeys(BY_HOLD, ACCEPTED)}


async def test_hold_of_another_task_is_not_found_where_both_are_named(doors: Doors, people: People) -> None:
    gate, question = Gate(doors, people["rob"]), asked(people["bot"])
    for task_id in (fresh(), asked(people["bot"]).task_id):
        wrong = question._replace(task_id=task_id)
        assert await answer_hold_on_bridge(gate, wrong, YES) == "not_found"
        assert await provide_hold(gate, wrong, YES) == "not_found"


# Asking.


async def request(gate: Gate, prompt: str) -> str:
    return code_of(gate.caller.post("/v1/requests", {"question": prompt}))


async def run_tool(gate: Gate, prompt: str) -> str:
    body = {"name": "human_input", "arguments": {"prompt": prompt}}
    return code_of(gate.caller.post("/v1/tools:run", body))


async def request_on_socket(gate: Gate, prompt: str) -> str:
    async with open_socket(gate.doors.url, gate.caller.token) as socket:
        reply = await socket.ask("request", body={"question": prompt})
    return ACCEPTED if reply["status"] < 400 else str(reply["body"]["code"])


async def publish(gate: Gate, prompt: str) -> str:
    async with bridge_of(gate.caller) as bridge:
        await bridge.connection.send(json.dumps({"type": "publish", "prompt": prompt}))
        told = await bridge.next_of("published", "error")
    return ACCEPTED if told["type"] == "published" else str(told["code"])


async def run_by_grpc(gate: Gate, prompt: str) -> str:
    asking = pb.RunRequest(prompt=prompt)
    return await grpc_code(
        gate, lambda channel, metadata: rpc.HumanInputToolStub(channel).Run(asking, metadata=metadata)
    )


ASKING = (request, run_tool, request_on_socket, publish, run_by_grpc)


@pytest.mark.parametrize(
    ("who", "prompt", "code"),
    [
        ("bot", "", "invalid"),
        ("bot", " \n", "invalid"),
        ("bot", "x" * TEXT_MAX_CHARS, ACCEPTED),
        ("bot", "🙂" * TEXT_MAX_CHARS, ACCEPTED),
        ("bot", "x" * (TEXT_MAX_CHARS + 1), "invalid"),
        ("bot", "🙂" * (TEXT_MAX_CHARS + 1), "invalid"),
        ("rob", "Go on?", "invalid"),
    ],
    ids=["empty", "blank", "the longest", "the longest in emoji", "longer", "longer in emoji", "a person's"],
)
async def test_question_is_asked_or_refused_alike_by_every_door(
    doors: Doors, people: People, who: str, prompt: str, code: str
) -> None:
    gate = Gate(doors, people[who])
    found = {ask.__name__: await ask(gate, prompt) for ask in ASKING}
    assert found == {ask.__name__: code for ask in ASKING}


# Reading.


@pytest.mark.parametrize(
    ("case", "who"),
    [
        (unknown, "rob"),
        (unknown, "bot"),
        (open_question, "mailer"),
        (closed, "mailer"),
        (open_question, "stranger"),
        (closed, "stranger"),
        (open_question, "theo"),
    ],
)
async def test_task_that_the_caller_does_not_see_is_not_found_by_every_door(
    doors: Doors, people: People, case: Ask, who: str
) -> None:
    gate, task_id = Gate(doors, people[who]), case(people).task_id
    get = pb.GetHumanInputRequest(task_id=task_id)
    found = {
        "requests": code_of(gate.caller.get(f"/v1/requests/{task_id}")),
        "human-input": code_of(gate.caller.get(f"/v1/human-input/{task_id}")),
        "gRPC": await grpc_code(
            gate,
            lambda channel, metadata: rpc.HumanInputStub(channel).GetHumanInput(get, metadata=metadata),
        ),
    }
    assert found == dict.fromkeys(found, "not_found")
