"""The spans of requests and calls: named and marked by OpenTelemetry's conventions, without what callers say."""

from __future__ import annotations

import asyncio
import http.client
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from aiohttp import web
from fastapi import FastAPI, WebSocket
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.middleware import Middleware

from gateway.rest.caller_note import note_caller
from gateway.rest.head_method import HeadAsGet
from gateway.rest.request_spans import PATH_MAX_CHARS, RequestSpans
from gateway.rpc.decoding import RECEIVED_MAX_BYTES
from gateway.rpc.serving import serving
from gateway.rpc.settings import RpcSettings
from schemas.actor import Actor
from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from tests.gateway.exporting import exporting
from tests.gateway.test_server_bounds import BOUNDS, WITHIN_S, served
from tests.servers.stack import wait_for
from vitals import tracing
from vitals.spans import current_trace, ids_in_hand

PROMPT = "must-not-be-told"
TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJib3QifQ.c2lnbmF0dXJl"
RUN = "placet.human_input.v1.HumanInputTool/Run"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    with exporting() as found:
        yield found


@pytest.fixture
async def channel(exported: InMemorySpanExporter) -> AsyncIterator[Any]:
    """A client of a gRPC server whose gateway answers with the status and code that its token names."""

    async def answer(request: web.Request) -> web.Response:
        status, _, code = request.headers["authorization"].removeprefix("Bearer ").partition(" ")
        fields = {"status": {"stringValue": "waiting_for_human"}, "task_id": {"stringValue": "t"}}
        made = {"result": {"structValue": {"fields": fields}}}
        return web.json_response({"code": code, "detail": "no"} if code else made, status=int(status))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    (port,) = [address[1] for address in runner.addresses]
    try:
        async with (
            serving(RpcSettings(f"http://127.0.0.1:{port}", "127.0.0.1", 0)) as address,
            grpc.aio.insecure_channel(address) as found,
        ):
            yield found
    finally:
        await runner.cleanup()


async def called(channel: Any, token: str) -> grpc.StatusCode:
    """The status of one call of the tool, with a token that says how the gateway answers."""
    call = rpc.HumanInputToolStub(channel).Run(
        pb.RunRequest(prompt=PROMPT), metadata=(("authorization", f"Bearer {token}"),)
    )
    status: grpc.StatusCode = await call.code()
    return status


def the_span(exported: InMemorySpanExporter) -> ReadableSpan:
    """The span of the only request, which ends a moment after its answer."""
    wait_for(exported.get_finished_spans, lambda found: len(found) > 0, WITHIN_S)
    (span,) = exported.get_finished_spans()
    return span


async def the_call_span(exported: InMemorySpanExporter) -> ReadableSpan:
    """The same of a call, which this loop serves."""
    return await asyncio.to_thread(the_span, exported)


@pytest.mark.parametrize(
    ("token", "status", "refusal", "has_failed"),
    [
        ("200", grpc.StatusCode.OK, None, False),
        ("401 unauthenticated", grpc.StatusCode.UNAUTHENTICATED, "unauthenticated", False),
        ("403 not_authorised", grpc.StatusCode.PERMISSION_DENIED, "not_authorised", False),
        ("409 already_decided", grpc.StatusCode.FAILED_PRECONDITION, "already_decided", False),
        ("503 unavailable", grpc.StatusCode.UNAVAILABLE, "unavailable", True),
        ("500 who_knows", grpc.StatusCode.INTERNAL, "who_knows", True),
    ],
)
async def test_call_has_failed_only_by_a_fault_of_the_server(
    channel: Any,
    exported: InMemorySpanExporter,
    token: str,
    status: grpc.StatusCode,
    refusal: str | None,
    has_failed: bool,
) -> None:
    assert await called(channel, token) is status

    span = await the_call_span(exported)
    attributes = dict(span.attributes or {})
    assert attributes.pop("placet.refusal_code", None) == refusal
    assert attributes.pop("error.type", None) == (status.name if has_failed else None)
    assert (span.status.status_code is StatusCode.ERROR) is has_failed
    service, _, method = RUN.partition("/")
    assert span.name == RUN
    assert attributes == {
        "rpc.system": "grpc",
        "rpc.service": service,
        "rpc.method": method,
        "rpc.grpc.status_code": status.value[0],
    }


async def test_message_that_grpc_itself_refuses_is_no_fault_of_the_server(
    channel: Any, exported: InMemorySpanExporter
) -> None:
    call = channel.unary_unary(f"/{RUN}")(
        b"x" * (RECEIVED_MAX_BYTES + 1), metadata=(("authorization", "Bearer 200"),)
    )
    assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    span = await the_call_span(exported)
    assert span.status.status_code is not StatusCode.ERROR
    assert (span.attributes or {})["rpc.grpc.status_code"] == grpc.StatusCode.CANCELLED.value[0]


async def test_message_that_cannot_be_read_has_the_span_of_a_refusal(
    channel: Any, exported: InMemorySpanExporter
) -> None:
    call = channel.unary_unary(f"/{RUN}")(b"\xff", metadata=(("authorization", "Bearer 200"),))
    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT

    span = await the_call_span(exported)
    assert span.name == RUN
    assert (span.attributes or {})["placet.refusal_code"] == "malformed"
    assert span.status.status_code is not StatusCode.ERROR


def traced_app(ids: list[dict[str, Any]] | None = None) -> FastAPI:
    """An application that notes the ids that its log lines would have before it adds those of each request."""
    assert tracing.spans is not None
    app = FastAPI(middleware=[Middleware(RequestSpans, spans=tracing.spans), Middleware(HeadAsGet)])

    @app.get("/v1/holds/{hold_id}")
    async def hold(hold_id: str) -> str:
        if ids is not None and tracing.spans is not None:
            ids.append(dict(ids_in_hand()))
            tracing.spans.note({"placet.hold_id": hold_id})
        return "well"

    @app.websocket("/v1/ws")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_json([current_trace(), dict(ids_in_hand())])
        await websocket.close()

    return app


@pytest.fixture
def connection(exported: InMemorySpanExporter) -> Iterator[http.client.HTTPConnection]:
    with served(BOUNDS, traced_app()) as (port, _):
        opened = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
        yield opened
        opened.close()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_request_has_its_route_path_and_scheme_and_never_its_query(
    connection: http.client.HTTPConnection, exported: InMemorySpanExporter, method: str
) -> None:
    connection.request(method, f"/v1/holds/h%201?reason={PROMPT}")
    connection.getresponse().read()

    span = the_span(exported)
    assert span.name == f"{method} /v1/holds/{{hold_id}}"
    assert span.attributes == {
        "http.request.method": method,
        "http.response.status_code": 200,
        "http.route": "/v1/holds/{hold_id}",
        "url.path": "/v1/holds/h%201",
        "url.scheme": "http",
    }


def test_path_that_leads_nowhere_and_an_unknown_method_are_not_told(
    connection: http.client.HTTPConnection, exported: InMemorySpanExporter
) -> None:
    connection.request("PROPFIND", f"/{PROMPT}")
    connection.getresponse().read()

    span = the_span(exported)
    assert span.name == "HTTP"
    assert span.attributes == {
        "http.request.method": "_OTHER",
        "http.response.status_code": 404,
        "url.scheme": "http",
    }


def test_long_path_is_cut(connection: http.client.HTTPConnection, exported: InMemorySpanExporter) -> None:
    connection.request("GET", f"/v1/holds/{'h' * 2_000}")
    connection.getresponse().read()

    assert len(str((the_span(exported).attributes or {})["url.path"])) == PATH_MAX_CHARS


def test_token_in_a_path_is_masked_before_the_path_is_cut(
    connection: http.client.HTTPConnection, exported: InMemorySpanExporter
) -> None:
    before = "h" * (PATH_MAX_CHARS - len("/v1/holds/") - 20)
    connection.request("GET", f"/v1/holds/{before}{TOKEN}")
    connection.getresponse().read()

    assert (the_span(exported).attributes or {})["url.path"] == f"/v1/holds/{before}[token]"


def test_only_ids_of_a_path_are_told_and_tokens_among_them_are_masked(exported: InMemorySpanExporter) -> None:
    path = {
        "execution_id": "x" * 129,
        "call_id": TOKEN,
        "hold_id": "h-1",
        "request_id": "two words",
        "name": "n",
    }
    assert tracing.spans is not None
    with tracing.spans.span("request"):
        note_caller(Actor(subject="bot", tenant="acme", project="books", roles=("agent",)), path)
        ids = dict(ids_in_hand())
    assert the_span(exported).attributes == {
        "placet.tenant": "acme",
        "placet.project": "books",
        "placet.call_id": "[token]",
        "placet.hold_id": "h-1",
    }
    assert ids == {"tenant": "acme", "project": "books", "call_id": "[token]", "hold_id": "h-1"}


FIRST_TRACE, FIRST_SPAN = "a" * 32, "b" * 16
FIRST = f"GET /v1/holds/first HTTP/1.1\r\nHost: a\r\ntraceparent: 00-{FIRST_TRACE}-{FIRST_SPAN}-01\r\n\r\n"


def test_pipelined_request_has_neither_the_trace_nor_the_ids_of_the_one_before_it(
    exported: InMemorySpanExporter,
) -> None:
    """A proxy sends the requests of many subjects over one connection."""
    ids: list[dict[str, Any]] = []
    with (
        served(BOUNDS, traced_app(ids)) as (port, _),
        socket.create_connection(("127.0.0.1", port), WITHIN_S) as client,
    ):
        client.sendall((FIRST + "GET /v1/holds/second HTTP/1.1\r\nHost: a\r\n\r\n").encode())
        wait_for(exported.get_finished_spans, lambda found: len(found) == 2, WITHIN_S)
    first, second = exported.get_finished_spans()
    assert first.parent is not None
    assert first.context is not None
    assert second.context is not None
    assert f"{first.context.trace_id:032x}-{first.parent.span_id:016x}" == f"{FIRST_TRACE}-{FIRST_SPAN}"
    assert second.parent is None
    assert second.context.trace_id != first.context.trace_id
    assert ids == [{}, {}]


def test_websocket_has_neither_the_trace_nor_the_ids_of_the_requests_before_it(
    exported: InMemorySpanExporter,
) -> None:
    upgrade = (
        "GET /v1/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    received = b""
    with (
        served(BOUNDS, traced_app([])) as (port, _),
        socket.create_connection(("127.0.0.1", port), WITHIN_S) as client,
    ):
        client.sendall(FIRST.encode())
        while b'"well"' not in received:
            received += client.recv(4096)
        client.sendall(upgrade.encode())
        while chunk := client.recv(4096):
            received += chunk
    assert b'["",{}]' in received
