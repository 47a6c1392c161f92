"""The tool human_input over gRPC, as its generated clients use it, on a real stack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import grpc
import httpx
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from gateway.rpc.serving import SERVICES, serving
from gateway.rpc.settings import RpcSettings
from gateway.rpc.statuses import STATUSES, status_of
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from schemas.refusals import Refusal
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_outage_live import stopped
from tests.servers.authority import HOST, make_authority

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PROMPT = "Следующий шаг — удаление учетной записи пользователя. Вы одобряете?"
Code = grpc.StatusCode
Metadata = tuple[tuple[str, str], ...]
# A token that the role leaves to the gateway: it has no keys.
SOMEBODY = (("authorization", "Bearer x"),)


class Stubs(NamedTuple):
    """The generated clients on one channel."""

    tool: Any
    tasks: Any
    health: Any
    reflection: Any


def stubs_on(channel: Any) -> Stubs:
    return Stubs(
        rpc.HumanInputToolStub(channel),
        rpc.HumanInputStub(channel),
        health_pb2_grpc.HealthStub(channel),
        reflection_pb2_grpc.ServerReflectionStub(channel),
    )


@pytest.fixture
async def stubs(doors: Doors) -> AsyncIterator[Stubs]:
    async with grpc.aio.insecure_channel(doors.stack.status()["grpc_address"]) as channel:
        yield stubs_on(channel)


def by(caller: Caller, *more: tuple[str, str]) -> Metadata:
    return (("authorization", f"Bearer {caller.token}"), *more)


async def refused(call: Any) -> tuple[Code, str, str]:
    """The status of a call that is refused, its detail, and the refusal's own code."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    trailing = dict(error.value.trailing_metadata() or ())
    return error.value.code(), error.value.details() or "", trailing.get("placet-code", "")


async def healthy(stubs: Stubs, service: str, wanted: str, within_s: float = 20.0) -> None:
    """Wait until a service's health is as wanted, by the stream that load balancers use."""
    request = health_pb2.HealthCheckRequest(service=service)
    async with asyncio.timeout(within_s):
        async for answer in stubs.health.Watch(request):
            if health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status) == wanted:
                return


async def test_task_whose_id_two_agents_chose_is_answered_by_its_hold(
    stubs: Stubs, doors: Doors, bot: Caller, anna: Caller
) -> None:
    task_id = f"task-{uuid4().hex[:12]}"
    rival = doors.caller("rival", "agent", agent="rival")
    mine, theirs = (
        asker.post("/v1/requests", {"request_id": task_id, "question": "?"}).json()["hold_id"]
        for asker in (bot, rival)
    )
    for hold_id, wanted in (
        ("", (Code.ALREADY_EXISTS, "id_reused")),
        ("another", (Code.NOT_FOUND, "not_found")),
    ):
        answer = pb.ProvideHumanInputRequest(task_id=task_id, response="yes", hold_id=hold_id)
        code, _, refusal = await refused(stubs.tasks.ProvideHumanInput(answer, metadata=by(anna)))
        assert (code, refusal) == wanted
    wrong = pb.ProvideHumanInputRequest(task_id="other", response="yes", hold_id=mine)
    code, detail, _ = await refused(stubs.tasks.ProvideHumanInput(wrong, metadata=by(anna)))
    assert (code, detail) == (Code.NOT_FOUND, "not_found: the hold is not one of this task")
    route = pb.ProvideHumanInputRequest(task_id=task_id, response="yes", hold_id=f"{mine}/view")
    code, _, refusal = await refused(stubs.tasks.ProvideHumanInput(route, metadata=by(anna)))
    assert (code, refusal) == (Code.INVALID_ARGUMENT, "invalid")
    answer = pb.ProvideHumanInputRequest(task_id=task_id, response="yes", hold_id=mine)
    await stubs.tasks.ProvideHumanInput(answer, metadata=by(anna))
    assert bot.get(f"/v1/human-input/{task_id}?wait=5").json() == {"response": "yes"}
    assert anna.get(f"/v1/holds/{theirs}").json()["status"] == "open"


async def test_prompt_is_asked_at_once_watched_and_answered(stubs: Stubs, bot: Caller, anna: Caller) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt=PROMPT), metadata=by(bot))
    assert run.status == "waiting_for_human"
    asked = pb.GetHumanInputRequest(task_id=run.task_id)
    assert (await stubs.tasks.GetHumanInput(asked, metadata=by(bot))).status == "waiting_for_human"
    assert bot.get(f"/v1/requests/{run.task_id}").json()["question"] == PROMPT

    seen = []
    watching = stubs.tasks.WatchHumanInput(pb.WatchHumanInputRequest(task_id=run.task_id), metadata=by(bot))
    async for state in watching:
        seen.append((state.status, state.response))
        if len(seen) == 1:
            answer = pb.ProvideHumanInputRequest(task_id=run.task_id, response="Да, продолжить.")
            await stubs.tasks.ProvideHumanInput(answer, metadata=by(anna))
    assert seen == [("waiting_for_human", ""), ("answered", "Да, продолжить.")]
    assert (await stubs.tasks.GetHumanInput(asked, metadata=by(bot))).response == "Да, продолжить."
    assert bot.get(f"/v1/human-input/{run.task_id}").json() == {"response": "Да, продолжить."}


async def test_tool_by_its_name_answers_with_a_value_of_protobuf(stubs: Stubs, bot: Caller) -> None:
    request = ParseDict({"name": "human_input", "arguments": {"prompt": PROMPT}}, pb.RunToolRequest())
    answer = MessageToDict(await stubs.tasks.RunTool(request, metadata=by(bot)))
    assert answer["result"]["status"] == "waiting_for_human"
    assert bot.get(f"/v1/human-input/{answer['result']['task_id']}").status_code == 202
    request.name = "rm"
    code, detail, own = await refused(stubs.tasks.RunTool(request, metadata=by(bot)))
    assert (code, own) == (Code.INVALID_ARGUMENT, "invalid")
    assert detail.startswith("invalid: name:")


async def test_waiting_ends_with_the_answer_or_before_the_deadline(
    stubs: Stubs, bot: Caller, anna: Caller
) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot))
    asked = pb.GetHumanInputRequest(task_id=run.task_id, wait_seconds=60)
    # The caller's deadline is shorter than its wish: it gets the present state in time, and no error.
    early = await stubs.tasks.GetHumanInput(asked, metadata=by(bot), timeout=1.5)
    assert early.status == "waiting_for_human"
    waiting = stubs.tasks.GetHumanInput(asked, metadata=by(bot))
    request = await asyncio.to_thread(bot.get, f"/v1/requests/{run.task_id}")
    word = {"decision": "reject", "feedback": "ask the owner"}
    await asyncio.to_thread(anna.post, f"/v1/holds/{request.json()['hold_id']}/decision", word)
    ended = await waiting
    assert (ended.status, ended.response, ended.feedback) == ("rejected", "", "ask the owner")
    code, _, own = await refused(
        stubs.tasks.ProvideHumanInput(
            pb.ProvideHumanInputRequest(task_id=run.task_id, response="late"), metadata=by(anna)
        )
    )
    assert (code, own) == (Code.FAILED_PRECONDITION, "already_decided")


async def test_repeat_under_one_idempotency_key_is_one_task(stubs: Stubs, bot: Caller) -> None:
    key = ("idempotency-key", "grpc-1")
    first, again = [
        await stubs.tool.Run(pb.RunRequest(prompt="Once?"), metadata=by(bot, key)) for _ in range(2)
    ]
    assert first.task_id == again.task_id
    other = stubs.tool.Run(pb.RunRequest(prompt="Twice?"), metadata=by(bot, key))
    assert (await refused(other))[::2] == (Code.ALREADY_EXISTS, "idempotency_key_reused")


async def test_call_that_may_not_be_made_is_refused_as_by_rest(
    doors: Doors, stubs: Stubs, bot: Caller, anna: Caller
) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot))
    mailer = doors.caller("bot", "agent", agent="mailer")
    get, provide = (
        pb.GetHumanInputRequest(task_id=run.task_id),
        pb.ProvideHumanInputRequest(task_id=run.task_id),
    )
    unknown = pb.RunRequest()
    unknown.MergeFromString(b"\x0a\x01?\x7a\x01x")
    assert len(UnknownFieldSet(unknown)) == 1
    calls: Sequence[tuple[Any, Code, str]] = (
        (stubs.tool.Run(pb.RunRequest(prompt="?")), Code.UNAUTHENTICATED, "unauthenticated"),
        (
            stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=(("authorization", "Bearer x"),)),
            Code.UNAUTHENTICATED,
            "unauthenticated",
        ),
        (stubs.tool.Run(pb.RunRequest(), metadata=by(bot)), Code.INVALID_ARGUMENT, "invalid"),
        (stubs.tool.Run(unknown, metadata=by(bot)), Code.INVALID_ARGUMENT, "invalid"),
        (
            stubs.tool.Run(pb.RunRequest(prompt="x" * 70_000), metadata=by(bot)),
            Code.INVALID_ARGUMENT,
            "invalid",
        ),
        (stubs.tasks.GetHumanInput(get, metadata=by(mailer)), Code.NOT_FOUND, "not_found"),
        (stubs.tasks.ProvideHumanInput(provide, metadata=by(bot)), Code.PERMISSION_DENIED, "not_authorised"),
        *(
            (
                stubs.tasks.GetHumanInput(pb.GetHumanInputRequest(task_id=other), metadata=by(bot)),
                status,
                own,
            )
            for status, own, others in (
                (Code.NOT_FOUND, "not_found", ("..", ".")),
                (Code.INVALID_ARGUMENT, "invalid", ("../holds", "%2e%2e", "a?b", "t" * 129)),
            )
            for other in others
        ),
    )
    for call, status, own in calls:
        assert (await refused(call))[::2] == (status, own)
    no_agents = await refused(stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(anna)))
    assert no_agents[0] == Code.INVALID_ARGUMENT
    assert "use a token that was issued for the agent that asks" in no_agents[1]
    expired = stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot), timeout=0.0001)
    assert (await refused(expired))[0] == Code.DEADLINE_EXCEEDED


async def test_health_follows_kafka_and_calls_are_unavailable_meanwhile(
    doors: Doors, stubs: Stubs, bot: Caller
) -> None:
    for service in ("", *SERVICES):
        await healthy(stubs, service, "SERVING")
    with stopped(doors, "kafka"):
        for service in ("", *SERVICES):
            await healthy(stubs, service, "NOT_SERVING")
        call = stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot, ("idempotency-key", "away")))
        code, _, own = await refused(call)
        assert (code, own) == (Code.UNAVAILABLE, "unavailable")
    await healthy(stubs, SERVICES[0], "SERVING", 60)
    again = stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot, ("idempotency-key", "away")))
    assert (await again).task_id


async def test_reflection_names_the_services_and_their_messages(stubs: Stubs) -> None:
    async def ask(**request: Any) -> Any:
        asked = reflection_pb2.ServerReflectionRequest(**request)
        async for answer in stubs.reflection.ServerReflectionInfo(iter([asked])):
            return answer
        raise AssertionError("no answer")

    listed = (await ask(list_services="")).list_services_response.service
    assert set(SERVICES) <= {service.name for service in listed}
    found = await ask(file_containing_symbol=SERVICES[0])
    assert b"WatchHumanInput" in b"".join(found.file_descriptor_response.file_descriptor_proto)


async def test_server_with_a_certificate_serves_over_tls_and_no_other_way(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    tls = tmp_path / "tls"
    tls.mkdir()
    authority.chain.rename(tls / "tls.crt")
    authority.key.rename(tls / "tls.key")
    settings = RpcSettings("http://127.0.0.1:9", "127.0.0.1", 0, tls)
    trusted = grpc.ssl_channel_credentials(authority.ca_file.read_bytes())
    async with serving(settings) as address:
        async with grpc.aio.secure_channel(
            address, trusted, (("grpc.ssl_target_name_override", HOST),)
        ) as channel:
            await healthy(stubs_on(channel), "", "NOT_SERVING")
            call = stubs_on(channel).tool.Run(pb.RunRequest(prompt="?"), metadata=SOMEBODY)
            assert (await refused(call))[::2] == (Code.UNAVAILABLE, "unavailable")
        async with grpc.aio.insecure_channel(address) as channel:
            plain = stubs_on(channel).health.Check(health_pb2.HealthCheckRequest(), timeout=5)
            assert (await refused(plain))[0] == Code.UNAVAILABLE


def test_every_refusal_has_a_status_and_those_about_the_state_are_failed_preconditions() -> None:
    assert {status_of(code) for code in Refusal} == {*STATUSES.values(), Code.FAILED_PRECONDITION}
    assert status_of("already_decided") == Code.FAILED_PRECONDITION
    assert status_of("of another version", 503) == Code.INTERNAL
    assert status_of("of another version", 414) == Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("metadata", "own"),
    [
        ((("idempotency-key", "a key "),), "invalid"),
        ((("idempotency-key", "one"), ("idempotency-key", "two")), "malformed"),
        ((("authorization", "Bearer another"),), "malformed"),
        ((("placet-project", "books"), ("placet-project", "books")), "malformed"),
    ],
)
async def test_metadata_that_no_request_could_have_is_refused(
    stubs: Stubs, bot: Caller, metadata: Metadata, own: str
) -> None:
    call = stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot, *metadata))
    code, detail, found = await refused(call)
    assert (code, found) == (Code.INVALID_ARGUMENT, own)
    assert detail.startswith(f"{own}: {metadata[0][0]}")


async def test_white_space_around_a_token_is_removed_as_http_does(stubs: Stubs, bot: Caller) -> None:
    metadata = (("authorization", f"Bearer {bot.token} "), ("placet-project", " books"))
    run = await stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=metadata)
    assert run.status == "waiting_for_human"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"\x2a\x01x", "field 5 of Struct"),
        (b"\x0a\x11\x0a\x06prompt\x12\x07\x1a\x01?\x4a\x02no", "field 9 of Value"),
    ],
)
async def test_unknown_fields_are_refused_at_any_depth(
    stubs: Stubs, bot: Caller, raw: bytes, told: str
) -> None:
    request = pb.RunToolRequest(name="human_input")
    request.arguments.MergeFromString(raw)
    code, detail, own = await refused(stubs.tasks.RunTool(request, metadata=by(bot)))
    assert (code, own) == (Code.INVALID_ARGUMENT, "invalid")
    assert told in detail


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_arguments_that_are_no_json_are_malformed(stubs: Stubs, bot: Caller, number: float) -> None:
    request = pb.RunToolRequest(name="human_input")
    request.arguments.update({"prompt": "?", "n": number})
    code, _, own = await refused(stubs.tasks.RunTool(request, metadata=by(bot)))
    assert (code, own) == (Code.INVALID_ARGUMENT, "malformed")


@pytest.mark.parametrize(
    ("raw", "own"),
    [
        (b"\x0a\xff\xff", "malformed"),
        (b"\x0a\x02\xff\xfe", "malformed"),
        (b"\x0a" * (1024 * 1024 + 1), "too_large"),
    ],
)
@pytest.mark.parametrize("method", ["HumanInputTool/Run", "HumanInput/RunTool", "HumanInput/WatchHumanInput"])
async def test_message_that_cannot_be_read_is_refused_with_a_code(
    doors: Doors, bot: Caller, method: str, raw: bytes, own: str
) -> None:
    async with grpc.aio.insecure_channel(doors.stack.status()["grpc_address"]) as channel:
        path = f"/placet.human_input.v1.{method}"
        if method.endswith("WatchHumanInput"):
            stream: Any = channel.unary_stream(path)
            call = stream(raw, metadata=by(bot)).read()
        else:
            unary: Any = channel.unary_unary(path)
            call = unary(raw, metadata=by(bot))
        code, detail, found = await refused(call)
    assert (code, found) == (Code.INVALID_ARGUMENT, own)
    assert "Unexpected" not in detail


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 60.5])
async def test_wait_that_nobody_may_ask_for_is_refused(stubs: Stubs, bot: Caller, seconds: float) -> None:
    run = await stubs.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot))
    asked = pb.GetHumanInputRequest(task_id=run.task_id, wait_seconds=seconds)
    code, _, own = await refused(stubs.tasks.GetHumanInput(asked, metadata=by(bot)))
    assert (code, own) == (Code.INVALID_ARGUMENT, "invalid")


async def test_case_30_invalid_tokens_over_grpc_refuse_nobody_of_this_machine_over_rest(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    own_connections = (("grpc.use_local_subchannel_pool", 1),)
    address = doors.stack.status()["grpc_address"]
    async with grpc.aio.insecure_channel(address, own_connections) as channel:
        stranger = stubs_on(channel)
        known = await stranger.tool.Run(pb.RunRequest(prompt="?"), metadata=by(bot))
        seen = set()
        for first in range(0, 1_000, 50):
            tokens = (f"Bearer {bot.token[:-8]}{number:08}" for number in range(first, first + 50))
            calls = [
                refused(stranger.tool.Run(pb.RunRequest(prompt="?"), metadata=(("authorization", token),)))
                for token in tokens
            ]
            seen |= {each[::2] for each in await asyncio.gather(*calls)}
        # A slow machine does not reach the limit of this role (test_grpc_bounds.py), nor need it.
        assert {(Code.UNAUTHENTICATED, "unauthenticated")} <= seen
        assert seen <= {(Code.UNAUTHENTICATED, "unauthenticated"), (Code.RESOURCE_EXHAUSTED, "quota")}
        task = pb.GetHumanInputRequest(task_id=known.task_id)
        assert (await stranger.tasks.GetHumanInput(task, metadata=by(bot))).status == "waiting_for_human"
    async with httpx.AsyncClient() as fresh:
        headers = {"Authorization": f"Bearer {anna.token}"}
        assert (await fresh.get(f"{doors.url}/v1/holds", headers=headers)).status_code == 200
