"""Signed grants end to end: shown, verified by a tool's server, consumed once, revoked, rotated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from placet import AsyncPlacet, NotReleased
from placet.grants import Attempt, GatewayConsumer, GrantVerifier, RemoteKeys, read_jwks, verify
from placet.grants.asgi import GrantMiddleware
from tests.gateway.conftest import TOOLS, Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import run_placet

pytestmark = [pytest.mark.stack, pytest.mark.broker]
JWKS = "/.well-known/jwks.json"
ALLOWED = {"policy": "lenient", "rules": [{"id": "all", "match": {"tools": ["send_money"]}, "then": "allow"}]}


class ToolServer:
    """A tool behind the middleware: what ran, and how it answers to a call."""

    def __init__(self, client: httpx.AsyncClient, consumer: GatewayConsumer) -> None:
        self.client = client
        self.consumer = consumer
        self.ran: list[Any] = []
        self.attempts: list[Attempt] = []

    async def run(self, request: Request) -> Response:
        attempt = request.state.placet
        self.attempts.append(attempt)
        self.ran.append((await request.json(), attempt.attempt_id))
        return JSONResponse({"attempt_id": attempt.attempt_id})

    async def call(self, token: str, arguments: Any) -> httpx.Response:
        return await self.client.post("/", json=arguments, headers={"Placet-Grant": token})


@asynccontextmanager
async def tool_server(url: str, token: str, tool: str = "send_money") -> AsyncIterator[ToolServer]:
    """A server of one tool, whose own token is `token`."""
    async with httpx.AsyncClient(timeout=10) as outward, httpx.AsyncClient(base_url="http://tool") as client:
        keys = RemoteKeys(f"{url}{JWKS}", client=outward, refetch_every_s=0.0)
        made = ToolServer(client, GatewayConsumer(url, outward, token))
        app = Starlette(routes=[Route("/", made.run, methods=["POST"])])
        guarded = GrantMiddleware(app, GrantVerifier(tool, keys=keys), made.consumer)
        client._transport = httpx.ASGITransport(app=guarded)
        yield made


def released(bot: Caller, anna: Caller) -> dict[str, Any]:
    """A call that a person approved, as its agent sees it."""
    return approved(bot, anna, bot.propose(bot.execution()))


def approved(bot: Caller, anna: Caller, held: dict[str, Any]) -> dict[str, Any]:
    """A held call once it is approved, as its agent sees it."""
    word = {"decision": "approve", "digest": held["digest"]}
    decided = anna.post(f"/v1/holds/{held['hold_id']}/decision", word)
    assert decided.status_code == 200, decided.text
    call: dict[str, Any] = bot.get(f"{path_of(held)}?wait=10").json()
    assert call["status"] == "released"
    return call


def path_of(call: dict[str, Any]) -> str:
    return f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"


async def test_released_call_runs_once_on_a_tools_server(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = released(bot, anna)
    token, arguments = call["grant"]["token"], call["approved_arguments"]
    async with tool_server(doors.url, bot.token) as tool:
        changed = await tool.call(token, {**arguments, "amount": 500})
        assert (changed.status_code, changed.json()["code"]) == (403, "digest_mismatch")
        ran = await tool.call(token, arguments)
        assert ran.status_code == 200, ran.text
        again = await tool.call(token, arguments)
        assert (again.status_code, again.json()["code"]) == (409, "already_consumed")
        assert [body for body, _ in tool.ran] == [arguments]
    consumed = bot.get(path_of(call)).json()
    assert (consumed["status"], consumed["attempt_id"]) == ("consumed", ran.json()["attempt_id"])
    assert consumed["grant"]["token"] is None
    result = {"attempt_id": ran.json()["attempt_id"], "outcome": "succeeded", "output": {"paid": True}}
    assert bot.post(f"{path_of(call)}/result", result).json()["status"] == "succeeded"


async def test_case_35_grant_of_another_project_uses_up_nothing(doors: Doors) -> None:
    """The ids, the agent and the arguments are the same in both projects, and so is the digest."""
    tenant = f"t-{uuid4().hex[:8]}"
    doors.publish(tenant)
    lenient = doors.caller("olga", "operator", tenant=tenant, project="pay2")
    assert lenient.call("PUT", "/v1/tools/send_money", TOOLS["send_money"]).status_code == 200
    assert lenient.call("PUT", "/v1/policies/lenient", ALLOWED).status_code == 200
    bot = doors.caller("bot", "agent", tenant=tenant, agent="billing")
    stranger = doors.caller("bot", "agent", tenant=tenant, agent="billing", project="pay2")
    ours = approved(bot, doors.caller("anna", "reviewer", tenant=tenant), bot.propose(bot.execution()))
    ids = {"execution_id": ours["execution_id"], "call_id": ours["call_id"]}
    assert stranger.post("/v1/executions", {"execution_id": ids["execution_id"]}).status_code == 201
    theirs = stranger.propose(**ids)
    assert (theirs["status"], theirs["digest"]) == ("released", ours["digest"])

    server = doors.caller("bank", "tool:send_money", tenant=tenant)
    async with tool_server(doors.url, server.token) as tool:
        refused = await tool.call(theirs["grant"]["token"], ours["approved_arguments"])
        assert (refused.status_code, refused.json()["code"], tool.ran) == (409, "not_released", [])
        assert bot.get(path_of(ours)).json()["status"] == "released"
        ran = await tool.call(ours["grant"]["token"], ours["approved_arguments"])
        assert (ran.status_code, len(tool.ran)) == (200, 1), ran.text
        (attempt,) = tool.attempts
        assert attempt.idempotency_key == ours["grant"]["decision_id"]


async def test_case_04_grant_of_the_first_release_does_not_run_the_second(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    first = released(bot, anna)
    arguments = first["approved_arguments"]
    async with tool_server(doors.url, doors.token("bank", "tool:send_money")) as tool:
        assert (await tool.call(first["grant"]["token"], arguments)).status_code == 200
        unknown = await tool.consumer.report(tool.attempts[0], "unknown", error="no answer")
        second = approved(bot, anna, {**first, "hold_id": bot.get(path_of(first)).json()["hold_id"]})
        assert (unknown["status"], second["grant"]["grant_id"] == first["grant"]["grant_id"]) == (
            "outcome_unknown",
            False,
        )
        late = await tool.call(first["grant"]["token"], arguments)
        assert (late.status_code, late.json()["code"], len(tool.ran)) == (409, "not_released", 1)
        ran = await tool.call(second["grant"]["token"], arguments)
        assert (ran.status_code, len(tool.ran)) == (200, 2), ran.text
    keys = [attempt.idempotency_key for attempt in tool.attempts]
    assert keys == [first["grant"]["decision_id"], second["grant"]["decision_id"]]


async def test_revoked_grant_is_refused_though_its_signature_is_good(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call = released(bot, anna)
    assert bot.post(f"{path_of(call)}/revoke", {"reason": "mine"}).status_code == 403
    revoked = anna.post(f"{path_of(call)}/revoke", {"reason": "wrong payee"})
    assert (revoked.status_code, revoked.json()["status"]) == (200, "revoked")
    assert revoked.json()["grant"]["token"] is None
    used = bot.post(f"{path_of(call)}/consume", {"digest": call["digest"], "attempt_id": "a1"})
    assert (used.status_code, used.json()["code"]) == (409, "not_released")
    async with tool_server(doors.url, bot.token) as tool:
        refused = await tool.call(call["grant"]["token"], call["approved_arguments"])
        assert (refused.status_code, refused.json()["code"]) == (409, "not_released")
        assert tool.ran == []


async def test_grant_for_one_tool_is_refused_by_another(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = released(bot, anna)
    async with tool_server(doors.url, bot.token, tool="shell") as tool:
        refused = await tool.call(call["grant"]["token"], call["approved_arguments"])
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_tool")
    assert bot.get(path_of(call)).json()["status"] == "released"


@pytest.mark.parametrize("who", ["reviewer", "another agent", "another tenant", "nobody"])
async def test_tools_server_whose_token_may_not_act_for_the_agent_runs_nothing(
    doors: Doors, bot: Caller, anna: Caller, who: str
) -> None:
    call = released(bot, anna)
    token = {
        "reviewer": anna.token,
        "another agent": doors.token("spy", "agent", agent="spy"),
        "another tenant": doors.token("bot", "agent", agent="billing", tenant="other"),
        "nobody": "not-a-token",
    }[who]
    async with tool_server(doors.url, token) as tool:
        refused = await tool.call(call["grant"]["token"], call["approved_arguments"])
        assert refused.status_code == (503 if who == "nobody" else 403)
        assert tool.ran == []
    assert bot.get(path_of(call)).json()["status"] == "released"


async def test_tools_server_with_the_role_of_its_tool_runs_that_tool_and_may_do_nothing_else(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call = released(bot, anna)
    server = doors.caller("bank", "tool:send_money")
    other = doors.caller("shop", "tool:read_file")

    async with tool_server(doors.url, other.token) as tool:
        assert (await tool.call(call["grant"]["token"], call["approved_arguments"])).status_code == 403
    async with tool_server(doors.url, server.token) as tool:
        ran = await tool.call(call["grant"]["token"], call["approved_arguments"])
        assert ran.status_code == 200, ran.text
        again = await tool.call(call["grant"]["token"], call["approved_arguments"])
        assert (again.status_code, len(tool.ran)) == (409, 1)
    result = {"attempt_id": ran.json()["attempt_id"], "outcome": "succeeded", "output": "paid"}
    assert other.post(f"{path_of(call)}/result", result).status_code == 403
    assert server.post(f"{path_of(call)}/result", result).json()["status"] == "succeeded"

    hold, execution = f"/v1/holds/{call['hold_id']}", f"/v1/executions/{call['execution_id']}"
    for path in (path_of(call), execution, hold, "/v1/audit"):
        assert server.get(path).status_code == 403, path
    assert server.get("/v1/holds").json()["items"] == []
    body = {"call_id": "own", "tool": "send_money", "arguments": {"amount": 1}}
    assert server.post(f"/v1/executions/{call['execution_id']}/tool-calls", body).status_code == 403
    assert server.post("/v1/executions", {"agent": "billing"}).status_code == 403


@pytest.mark.parametrize("door", ["rest", "websocket"])
async def test_result_is_taken_from_who_consumed_and_not_from_who_reads_off_the_attempt(
    doors: Doors, bot: Caller, anna: Caller, door: str
) -> None:
    call = released(bot, anna)
    server = doors.caller("bank", "tool:send_money")
    async with tool_server(doors.url, server.token) as tool:
        ran = await tool.call(call["grant"]["token"], call["approved_arguments"])
        assert ran.status_code == 200, ran.text
        attempt_id = bot.get(path_of(call)).json()["attempt_id"]
        assert attempt_id == ran.json()["attempt_id"], "the agent reads it off"
        ids = {"execution_id": call["execution_id"], "call_id": call["call_id"]}
        lies = {"attempt_id": attempt_id, "outcome": "succeeded", "output": {"paid": True}, "duration_ms": 0}
        if door == "rest":
            told = [
                (answer.status_code, answer.json()["code"])
                for who in (bot, doors.caller("olga", "operator"))
                for answer in (
                    who.post(f"{path_of(call)}/result", {**lies, "outcome": "failed", "error": "never ran"}),
                    # The very words that the server will say: under the same id, were it not of its subject.
                    who.post(f"{path_of(call)}/result", lies),
                    who.post(f"{path_of(call)}/heartbeat", {"attempt_id": attempt_id}),
                )
            ]
        else:
            async with open_socket(bot.url, bot.token) as agent:
                replies = [
                    await agent.ask("result", **ids, body={**lies, "outcome": "unknown"}),
                    await agent.ask("result", **ids, body=lies),
                    await agent.ask("heartbeat", **ids, body={"attempt_id": attempt_id}),
                ]
            told = [(reply["status"], reply["body"]["code"]) for reply in replies]
        assert set(told) == {(409, "already_consumed")}
        assert bot.get(path_of(call)).json()["status"] == "consumed"

        true = await tool.consumer.report(tool.attempts[0], "succeeded", output={"paid": True})
        assert (true["status"], true["output"]) == ("succeeded", {"paid": True})


def test_token_is_shown_to_who_may_consume_and_to_nobody_else(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call = released(bot, anna)
    operator = doors.caller("olga", "operator")
    assert operator.get(path_of(call)).json()["grant"]["token"] == call["grant"]["token"]
    for reader in (anna, doors.caller("ada", "analyst")):
        shown = reader.get(path_of(call))
        assert (shown.status_code, shown.json()["grant"]["token"]) == (200, None)
    for path in (
        f"/v1/executions/{call['execution_id']}/tool-calls",
        f"/v1/executions/{call['execution_id']}/events",
        f"/v1/holds/{call['hold_id']}",
    ):
        assert call["grant"]["token"] not in operator.get(path).text


def test_bearer_and_grant_are_never_taken_for_each_other(doors: Doors, bot: Caller, anna: Caller) -> None:
    call = released(bot, anna)
    as_bearer = Caller(doors.url, call["grant"]["token"], doors.client).get("/v1/holds")
    assert (as_bearer.status_code, as_bearer.json()["code"]) == (401, "unauthenticated")


async def test_policy_release_has_its_token_in_the_reply_and_a_decision_in_the_push(
    bot: Caller, anna: Caller
) -> None:
    async with open_socket(bot.url, bot.token) as agent, open_socket(anna.url, anna.token) as person:
        execution_id = bot.execution()
        allowed = await agent.propose(execution_id, "c1", "read_file")
        claims = jwt.decode(allowed["body"]["grant"]["token"], options={"verify_signature": False})
        assert (claims["aud"], claims["call_id"]) == ("tool:read_file", "c1")
        held = (await agent.propose(execution_id, "c2", "send_money"))["body"]
        await person.subscribe(f"calls:{execution_id}/c2", "holds")
        word = {"hold_id": held["hold_id"], "decision": "approve", "digest": held["digest"]}
        await person.send(type="decision", ref="d1", **word)
        pushed = await agent.next("tool_call_decided", call_id="c2")
        seen = await person.next("tool_call_decided", call_id="c2")
    assert jwt.get_unverified_header(pushed["grant"]["token"])["typ"] == "placet-grant+jwt"
    assert seen["grant"]["token"] is None
    shown = bot.get(f"/v1/executions/{execution_id}/tool-calls/c2").json()
    assert shown["grant"]["token"] == pushed["grant"]["token"]


async def test_snapshot_of_a_released_call_has_the_token_for_its_agent_only(
    bot: Caller, anna: Caller
) -> None:
    call = released(bot, anna)
    channel = f"calls:{call['execution_id']}/{call['call_id']}"
    async with open_socket(bot.url, bot.token) as agent, open_socket(anna.url, anna.token) as person:
        (mine,) = await agent.subscribe(channel)
        (theirs,) = await person.subscribe(channel)
    assert (mine["grant"]["token"], theirs["grant"]["token"]) == (call["grant"]["token"], None)


async def test_client_is_handed_the_grant_and_an_operators_takes_it_back(doors: Doors, bot: Caller) -> None:
    operator = doors.token("olga", "operator")
    keys = read_jwks(doors.client.get(f"{doors.url}{JWKS}").content)
    async with (
        AsyncPlacet(doors.url, token=bot.token) as agent,
        AsyncPlacet(doors.url, token=operator) as person,
    ):
        execution_id = bot.execution()
        call = await agent.propose(execution_id, "read_file", {"path": "a", "n": 1.0})
        assert call.grant is not None
        assert call.grant.token not in repr(call)
        granted = verify(call.grant.token, b'{"path":"a","n":1}', tool="read_file", keys=keys)
        assert (granted.call_id, granted.digest) == (call.call_id, call.grant.digest)
        revoked = await person.revoke(execution_id, call.call_id, reason="not now")
        assert revoked.status == "revoked"
        with pytest.raises(NotReleased):
            await agent.consume(execution_id, call.call_id, call.grant.digest)
        with pytest.raises(NotReleased):
            await person.revoke(execution_id, call.call_id)


def test_jwks_needs_no_token_and_may_be_kept_for_a_minute(doors: Doors) -> None:
    answer = doors.client.get(f"{doors.url}{JWKS}")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=60")
    for key in answer.json()["keys"]:
        assert {**key, "x": "", "kid": ""} == {
            "kty": "OKP",
            "crv": "Ed25519",
            "x": "",
            "kid": "",
            "use": "sig",
            "alg": "EdDSA",
        }


async def test_rotated_key_signs_in_the_running_gateway_and_old_grants_stay_good(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    before = released(bot, anna)
    done = run_placet("keys", "rotate", "grants", "--data-dir", str(doors.stack.data_dir), "--json")
    assert done.returncode == 0, done.stderr
    async with asyncio.timeout(20):
        while (after := released(bot, anna)) and kid_of(after) == kid_of(before):
            await asyncio.sleep(0.2)
    async with tool_server(doors.url, bot.token) as tool:
        for call in (before, after):
            ran = await tool.call(call["grant"]["token"], call["approved_arguments"])
            assert ran.status_code == 200, ran.text


def kid_of(call: dict[str, Any]) -> str:
    return str(jwt.get_unverified_header(call["grant"]["token"])["kid"])
