from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from placet.grants import GatewayConsumer, GrantVerifier, read_jwks
from placet.grants.asgi import GrantMiddleware
from tests.sdk.granting import ARGUMENTS, KEY, NOW_S, OTHER, claims_of, forged, grant, key_set
from tests.sdk.scripted import Asked, Scripted, serving


class Gate:
    """A gateway's consumption as it should be: once a call; and what it was asked."""

    def __init__(self, **changed: Any) -> None:
        self.consumed: list[Any] = []
        self.refusal: Response | None = None
        self.changed = changed
        self.script = Scripted(on_http=self.http)

    async def http(self, asked: Asked) -> Response:
        if self.refusal is not None:
            return self.refusal
        if self.consumed:
            return JSONResponse({"code": "already_consumed"}, 409)
        body = asked.json()
        self.consumed.append((asked.path, asked.headers["authorization"], body))
        call = {
            "tenant": "acme",
            "project": "books",
            "status": "consumed",
            "attempt_id": body["attempt_id"],
            "grant": {"digest": body["digest"], "grant_id": body["grant_id"], "decision_id": "d1"},
        }
        return JSONResponse({**call, **self.changed})


class Tool:
    """A tool's application: what reached it."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.keys: list[str] = []

    async def run(self, request: Request) -> Response:
        attempt = request.state.placet
        self.ran.append((await request.json(), attempt.grant.call_id, attempt.attempt_id))
        self.keys.append(attempt.idempotency_key)
        return JSONResponse({"ok": True})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def socket(self, socket: WebSocket) -> None:
        self.ran.append("socket")
        await socket.accept()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/run", self.run, methods=["POST", "GET", "PUT"]),
                Route("/healthz", self.health, methods=["GET", "POST"]),
                WebSocketRoute("/socket", self.socket),
            ]
        )


@asynccontextmanager
async def tool_server(gate: Gate, tool: Tool, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the tool's server, which asks the gate."""
    async with serving(gate.script), httpx.AsyncClient(timeout=5) as outward:
        consume = GatewayConsumer(gate.script.url, outward, "tool-server-token")
        verifier = GrantVerifier("send_money", keys=read_jwks(key_set(KEY)), clock=lambda: NOW_S)
        app = GrantMiddleware(tool.app(), verifier, consume, safe_paths=["/healthz"], **settings)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://tool") as client:
            yield client


async def refused(
    gate: Gate, tool: Tool, token: str | None = None, path: str = "/run", **request: Any
) -> tuple[int, str]:
    """Status and code of a call that the tool must not see."""
    headers = {"Placet-Grant": grant() if token is None else token, **request.pop("headers", {})}
    request = {"method": "POST", "json": ARGUMENTS, **request}
    async with tool_server(gate, tool) as client:
        answer = await client.request(url=path, headers=headers, **request)
    assert tool.ran == []
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


async def test_granted_call_is_consumed_then_runs_with_the_body_that_was_verified() -> None:
    gate, tool = Gate(), Tool()
    async with tool_server(gate, tool) as client:
        answer = await client.post("/run", json=ARGUMENTS, headers={"Placet-Grant": grant()})
    assert answer.json() == {"ok": True}
    ((path, authorization, body),) = gate.consumed
    assert path == "/v1/executions/e1/tool-calls/c1/consume"
    assert authorization == "Bearer tool-server-token"
    assert (body["digest"], body["grant_id"]) == (claims_of().digest, claims_of().grant_id)
    assert tool.ran == [(ARGUMENTS, "c1", body["attempt_id"])]


@pytest.mark.parametrize("parameter", ["", ";", "; charset=utf-8", ';charset="UTF-8"'])
async def test_call_whose_character_set_is_named_as_what_it_is_runs(parameter: str) -> None:
    gate, tool = Gate(), Tool()
    async with tool_server(gate, tool) as client:
        headers = {"Placet-Grant": grant(), "content-type": f"application/json{parameter}"}
        answer = await client.post("/run", json=ARGUMENTS, headers=headers)
    assert (answer.json(), len(tool.ran)) == ({"ok": True}, 1)


async def test_replayed_grant_is_refused_and_the_tool_runs_once() -> None:
    gate, tool = Gate(), Tool()
    async with tool_server(gate, tool) as client:
        sent: dict[str, Any] = {"json": ARGUMENTS, "headers": {"Placet-Grant": grant()}}
        answers = [await client.post("/run", **sent) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 409, 409]
    assert answers[1].json()["code"] == "already_consumed"
    assert len(tool.ran) == 1


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ({"token": ""}, (401, "malformed")),
        ({"token": "a.b.c"}, (401, "malformed")),
        ({"token": grant(OTHER)}, (401, "unknown_key")),
        ({"token": forged(OTHER.private_key)}, (401, "bad_signature")),
        ({"token": grant(expires_at_s=NOW_S - 60)}, (401, "expired")),
        ({"token": grant(tool="shell")}, (403, "wrong_tool")),
        ({"json": {**ARGUMENTS, "amount": 99}}, (403, "digest_mismatch")),
        ({"json": None, "content": b"{}"}, (415, "unsupported_media_type")),
        (
            {"json": None, "content": b"{", "headers": {"content-type": "application/json"}},
            (400, "malformed_arguments"),
        ),
        *(
            (
                {"headers": {"content-type": f"application/json; {parameter}"}},
                (415, "unsupported_media_type"),
            )
            for parameter in ("charset=utf-7", "charset=utf-8; charset=utf-16", "charset=latin-1", "x=1")
        ),
        *(
            (
                {
                    "json": None,
                    "content": json.dumps(ARGUMENTS).encode(encoding),
                    "headers": {"content-type": "application/json"},
                },
                (400, "malformed_arguments"),
            )
            for encoding in ("utf-16", "utf-16-le", "utf-32-be", "utf-8-sig")
        ),
        ({"json": {"text": "x" * 262_144}}, (413, "too_large")),
        ({"path": "/run?dry=no"}, (400, "malformed")),
        ({"path": "/anything"}, None),
        ({"method": "GET"}, (405, "method_not_allowed")),
        ({"method": "PUT"}, (405, "method_not_allowed")),
        ({"method": "POST", "path": "/healthz", "token": "x"}, (401, "malformed")),
        ({"headers": {"content-encoding": "gzip"}}, (415, "unsupported_media_type")),
    ],
)
async def test_call_without_a_fitting_grant_never_reaches_the_tool(
    request_: dict[str, Any], wanted: tuple[int, str] | None
) -> None:
    gate, tool = Gate(), Tool()
    if wanted is None:
        # A path that there is not: the grant is used, and the application says so itself.
        async with tool_server(gate, tool) as client:
            headers = {"Placet-Grant": grant()}
            assert (await client.post("/anything", json=ARGUMENTS, headers=headers)).status_code == 404
        return
    assert await refused(gate, tool, **request_) == wanted
    assert gate.consumed == []


async def test_body_without_a_length_is_counted_as_it_comes() -> None:
    gate, tool = Gate(), Tool()

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield b" " * 1024

    async with tool_server(gate, tool) as client:
        headers = {"Placet-Grant": grant(), "content-type": "application/json"}
        answer = await client.post("/run", content=parts(), headers=headers)
    assert (answer.status_code, tool.ran, gate.consumed) == (413, [], [])


async def test_two_grants_in_one_request_are_refused() -> None:
    gate, tool = Gate(), Tool()
    async with tool_server(gate, tool) as client:
        headers = [("Placet-Grant", grant()), ("Placet-Grant", grant())]
        answer = await client.post("/run", json=ARGUMENTS, headers=headers)
    assert (answer.status_code, answer.json()["code"], tool.ran) == (401, "missing", [])


@pytest.mark.parametrize(
    ("status", "code", "wanted"),
    [
        (409, "not_released", (409, "not_released")),
        (409, "already_consumed", (409, "already_consumed")),
        (409, "execution_closed", (409, "not_released")),
        (409, "digest_mismatch", (403, "digest_mismatch")),
        (403, "not_authorised", (403, "not_authorised")),
        (404, "not_found", (403, "not_authorised")),
        (401, "unauthenticated", (503, "unavailable")),
        (429, "quota", (503, "unavailable")),
        (500, "internal", (503, "unavailable")),
        (503, "unavailable", (503, "unavailable")),
        (302, "elsewhere", (503, "unavailable")),
        (202, "held", (503, "unavailable")),
    ],
)
async def test_gateway_that_does_not_consume_means_the_tool_does_not_run(
    status: int, code: str, wanted: tuple[int, str]
) -> None:
    gate, tool = Gate(), Tool()
    gate.refusal = JSONResponse({"code": code}, status, headers={"Location": "/x"})
    assert await refused(gate, tool) == wanted


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"attempt_id":"other"}', b"\xff"])
async def test_gateway_that_says_yes_to_something_else_is_not_believed(body: bytes) -> None:
    gate, tool = Gate(), Tool()
    gate.refusal = Response(body, 200)
    assert await refused(gate, tool) == (403, "not_authorised")


async def test_consumption_in_another_project_is_refused() -> None:
    assert await refused(Gate(project="prod"), Tool()) == (403, "not_authorised")


async def test_consumption_of_another_release_is_refused() -> None:
    other = {"digest": claims_of().digest, "grant_id": "g2", "decision_id": "d1"}
    assert await refused(Gate(grant=other), Tool()) == (403, "not_authorised")


@pytest.mark.parametrize(("decision_id", "key"), [("d1", "d1"), (None, "g1")])
async def test_key_for_the_outside_world_is_of_the_release_and_not_the_calls_id(
    decision_id: str | None, key: str
) -> None:
    told = {"digest": claims_of().digest, "grant_id": claims_of().grant_id, "decision_id": decision_id}
    gate, tool = Gate(grant=told), Tool()
    async with tool_server(gate, tool) as client:
        answer = await client.post("/run", json=ARGUMENTS, headers={"Placet-Grant": grant()})
    assert (answer.status_code, tool.keys) == (200, [key])


async def test_gateway_away_fails_closed() -> None:
    gate, tool = Gate(), Tool()
    async with httpx.AsyncClient(timeout=5) as outward:
        verifier = GrantVerifier("send_money", keys=read_jwks(key_set(KEY)), clock=lambda: NOW_S)
        consume = GatewayConsumer("http://127.0.0.1:9", outward, "t")
        transport = httpx.ASGITransport(app=GrantMiddleware(tool.app(), verifier, consume))
        async with httpx.AsyncClient(transport=transport, base_url="http://tool") as client:
            answer = await client.post("/run", json=ARGUMENTS, headers={"Placet-Grant": grant()})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert (tool.ran, gate.consumed) == ([], [])


@pytest.mark.parametrize("status", [None, 502, 503])
async def test_lost_answer_is_asked_for_again_under_the_same_attempt(status: int | None) -> None:
    """Likewise one that a proxy, or a gateway that is stopping, gave in its place."""
    gate, tool = Gate(), Tool()
    asked: list[httpx.Request] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) == 1 and status is not None:
            return httpx.Response(status, text="not now")
        if len(asked) == 1:
            raise httpx.ReadTimeout("lost", request=request)
        sent = httpx.Response(200, content=request.content).json()
        has = {"status": "consumed", "attempt_id": sent["attempt_id"]}
        call = {"tenant": "acme", "project": "books", **has}
        return httpx.Response(200, json={**call, "grant": {**sent, "decision_id": "d1"}})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as outward:
        verifier = GrantVerifier("send_money", keys=read_jwks(key_set(KEY)), clock=lambda: NOW_S)
        app = GrantMiddleware(tool.app(), verifier, GatewayConsumer("https://placet", outward, "t"))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://t") as client:
            sent = {"json": ARGUMENTS, "headers": {"Placet-Grant": grant()}}
            assert (await client.post("/run", **sent)).status_code == 200  # type: ignore[arg-type]
    assert len({request.content for request in asked}) == 1
    assert (len(asked), len(tool.ran)) == (2, 1)
    assert gate.consumed == []


async def test_safe_path_may_be_read_without_a_grant_and_no_other() -> None:
    tool = Tool()
    async with tool_server(Gate(), tool) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        for path in ("/healthz/", "/run", "/healthz/../run"):
            assert (await client.get(path)).status_code == 405
    assert tool.ran == []


def test_websocket_is_closed_before_the_tool_sees_it() -> None:
    tool = Tool()
    verifier = GrantVerifier("send_money", keys=read_jwks(key_set(KEY)))

    async def never(grant: Any) -> Any:
        raise AssertionError("nothing is consumed")

    with (
        TestClient(GrantMiddleware(tool.app(), verifier, never)) as client,
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/socket"),
    ):
        raise AssertionError("the socket was accepted")
    assert tool.ran == []
