"""The HTTP server's bounds, on real sockets: an application that echoes, and clients that misbehave."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
import uvloop
import websockets

from gateway.main import listen
from gateway.rest.failed_authentications import FailedAuthenticationLimit
from gateway.server.bounds import Bounds
from gateway.server.connections import Connections, mark_request_authenticated
from gateway.server.http import BoundedHttp
from gateway.server.websocket import BoundedWebSocket
from gateway.shares.rates import Buckets

BOUNDS = Bounds(
    head_s=0.5,
    body_s=0.5,
    linger_s=5.0,
    unauthenticated=24,
    unauthenticated_per_address=24,
    unauthenticated_s=0,
    stall_s=0.5,
)
WITHIN_S = 60.0
OTHERS_WITHIN_S = 1.0
# Of the server's loop: so much later than its cut a connection is gone.
LATER_TURNS = 50
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
TOKEN = b"Authorization: known\r\n"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
VERSION = b"Sec-WebSocket-Version: 13\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Counts the body's bytes; 413 over 1 MiB, of which no more is read; an Authorization header makes known."""
    headers = dict(scope["headers"])
    if b"authorization" in headers:
        mark_request_authenticated(scope, "anybody")
    if scope["type"] == "websocket":
        await _echo_messages(receive, send)
        return
    if scope["path"] == "/guess":
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"] == "/later":
        for _ in range(LATER_TURNS):
            await asyncio.sleep(0)
    is_authenticated = b"authorization" in headers
    size, more = 0, True
    while more and size <= 1024 * 1024:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    status = 413 if more else 200
    # Headers are looked at once the body is there, as a route that reads it does.
    is_authenticated |= any(name == b"authorization" for name, _ in scope["headers"])
    body = json.dumps({"size": size, "known": is_authenticated}).encode()
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


async def _echo_messages(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": str(len(message.get("text") or ""))})


class Running(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(bounds: Bounds, app: Any = application) -> Iterator[tuple[int, Connections]]:
    """The application in a thread of its own, with the production loop and protocols."""
    unauthenticated = Connections(bounds)
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        FailedAuthenticationLimit(app, Buckets(per_s=0.01, burst_s=2_000.0)),
        loop="none",
        http=partial(BoundedHttp, bounds=bounds, client_connections=unauthenticated),  # type: ignore[arg-type]
        ws=partial(BoundedWebSocket, bounds=bounds),  # type: ignore[arg-type]
        ws_max_size=1024 * 1024,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = Running(config)
    thread = threading.Thread(target=lambda: uvloop.run(server.serve([listening])))
    thread.start()
    try:
        yield listening.getsockname()[1], unauthenticated
    finally:
        server.should_exit = True
        thread.join(WITHIN_S)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, Connections]]:
    with served(BOUNDS) as found:
        yield found


@pytest.fixture
def port(server: tuple[int, Connections]) -> int:
    return server[0]


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server ends the connection."""
    async with asyncio.timeout(WITHIN_S):
        return await reader.read()


async def asked(port: int, sent: bytes) -> bytes:
    async with connected(port) as (reader, writer):
        writer.write(sent)
        return await answer_of(reader)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def problem_in(answer: bytes) -> dict[str, Any]:
    """The problem document that an answer is."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    document: dict[str, Any] = json.loads(body)
    assert document["type"] == f"/problems/{document['code']}"
    return document


async def is_served(port: int) -> None:
    """Somebody else is answered."""
    async with asyncio.timeout(OTHERS_WITHIN_S):
        assert b" 200 OK" in await asked(port, GET + TOKEN + b"Connection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", 414),
        (GET + b"A: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (GET + b"a" * 40_000 + b": b\r\n\r\n", 431),
        (GET + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"\x00\x01\x02\r\n\r\n", 400),
    ],
    ids=["target", "value", "name", "count", "no HTTP"],
)
async def test_case_30_head_over_its_bounds_is_answered_ended_and_not_logged(
    port: int, head: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await asked(port, head)
    assert status_of(answer) == status
    assert b"application/problem+json" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == status
    assert caplog.records == []
    await is_served(port)


async def test_case_30_endless_header_is_answered_and_keeps_nobody_waiting(port: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(GET + b"A: ")
        for _ in range(64):
            writer.write(b"a" * 64 * 1024)
        assert status_of(await answer_of(reader)) == 431
    await is_served(port)


@pytest.mark.parametrize(
    "sent", [b"", GET, GET + b"A: b", b"\r\n" * 10], ids=["nothing", "half", "header", "lines"]
)
async def test_case_30_head_that_does_not_end_is_ended(port: int, sent: bytes) -> None:
    answer = await asked(port, sent)
    assert status_of(answer) == (408 if sent else 0)


async def test_case_30_head_that_comes_byte_by_byte_is_ended(port: int) -> None:
    async with connected(port) as (reader, writer):
        reading = asyncio.create_task(answer_of(reader))
        while not reading.done():
            writer.write(b"G")
            await asyncio.sleep(0.05)
        assert status_of(reading.result()) in (400, 408)


async def test_case_30_body_that_does_not_come_is_408(port: int) -> None:
    answer = await asked(port, POST + b"Content-Length: 10\r\n\r\nhalf")
    assert status_of(answer) == 408
    await is_served(port)


async def test_case_30_body_in_tiny_chunks_is_ended(port: int) -> None:
    answer = await asked(port, POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 50_000)
    assert status_of(answer) == 400


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip\r\nTransfer-Encoding: chunked"])
async def test_transfer_coding_that_is_not_unwrapped_is_501(port: int, coding: bytes) -> None:
    answer = await asked(port, POST + b"Transfer-Encoding: %b\r\n\r\n5\r\nhello\r\n0\r\n\r\n" % coding)
    assert (status_of(answer), problem_in(answer)["code"]) == (501, "unsupported_transfer_encoding")
    chunked = await asked(port, POST + b"Transfer-Encoding: Chunked\r\nConnection: close\r\n\r\n0\r\n\r\n")
    assert status_of(chunked) == 200


@pytest.mark.parametrize("is_cut", [False, True])
async def test_field_after_a_body_in_chunks_is_no_header(port: int, is_cut: bool) -> None:
    head = (
        POST
        + b"Connection: close\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n5\r\nhello\r\n"
    )
    trailer = b"0\r\n" + TOKEN + b"\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head if is_cut else head + trailer)
    await writer.drain()
    if is_cut:
        await asyncio.sleep(0.1)
        writer.write(trailer)
    answer = await asyncio.wait_for(reader.read(), WITHIN_S)
    writer.close()
    await writer.wait_closed()
    assert status_of(answer) == 200
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2]) == {"size": 5, "known": False}


def test_case_30_answer_to_a_giant_body_reaches_a_client_that_sends_it_all_first(port: int) -> None:
    for close in ({}, {"Connection": "close"}):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
        connection.request("POST", "/", b"x" * 10 * 1024 * 1024, close)
        assert connection.getresponse().status == 413
        connection.close()


def test_server_that_ends_while_a_websocket_is_closing_ends_in_order() -> None:
    """The client has said that it closes, and leaves the connection open."""
    hello = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    with socket.socket() as client:
        client.settimeout(WITHIN_S)
        # It ends before the client does, in a thread of its own: pytest tells an exception there.
        with served(BOUNDS) as (port, _):
            client.connect(("127.0.0.1", port))
            client.sendall(GET + TOKEN + hello + key)
            assert client.recv(4096).startswith(b"HTTP/1.1 101")
            client.sendall(b"\x88\x82\0\0\0\0\x03\xe8")
            assert client.recv(4096) == b"\x88\x02\x03\xe8"


def test_connection_is_used_again_after_a_body(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    for size in (0, 1_000_000, 5, 70_000):
        connection.request("POST", "/", b"x" * size)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["size"]) == (200, size)
    connection.close()


async def test_body_that_is_never_ended_after_its_refusal_is_ended(port: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(POST + b"Content-Length: 9000000\r\n\r\n" + b"x" * 2_000_000)
        assert status_of(await answer_of(reader)) == 413


async def test_pipelined_requests_are_answered_in_order_and_bounded(port: int) -> None:
    few = await asked(port, (GET + b"\r\n") * 4 + GET + b"Connection: close\r\n\r\n")
    assert few.count(b" 200 OK") == 5
    try:
        many = await asked(port, (GET + b"\r\n") * 1_000)
    except ConnectionResetError:
        many = b""
    assert many.count(b" 200 OK") < 1_000
    await is_served(port)


async def test_case_30_strangers_push_out_their_own_and_nobody_else(
    server: tuple[int, Connections],
) -> None:
    port, unauthenticated = server
    async with connected(port) as (reader, writer):
        writer.write(GET + TOKEN + b"\r\n")
        await reader.readuntil(b"}")
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(BOUNDS.unauthenticated + 5)]
        await is_served(port)
        assert len(unauthenticated) <= BOUNDS.unauthenticated
        writer.write(GET + TOKEN + b"Connection: close\r\n\r\n")
        assert b" 200 OK" in await answer_of(reader), "whoever is known stays"
        for _, stranger in silent:
            stranger.transport.abort()


def test_client_that_leaves_in_the_middle_of_its_body_is_no_error(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
            connection.putrequest("POST", "/")
            connection.putheader("Content-Length", "100")
            connection.endheaders(b"half")
            connection.close()
        asyncio.run(is_served(port))
    assert caplog.records == []


async def test_case_30_strangers_who_keep_failing_are_refused_at_once_and_whoever_is_known_goes_on() -> None:
    with served(BOUNDS) as (port, _):
        async with connected(port) as (reader, writer):
            writer.write(GET + TOKEN + b"\r\n")
            await reader.readuntil(b"}")
            guess = b"GET /guess HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            statuses = [status_of(await asked(port, guess)) for _ in range(40)]
            assert statuses[:20] == [401] * 20
            assert statuses[25:] == [429] * 15
            upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
            refused = await asked(port, GET + upgrade + KEY + VERSION + b"\r\n")
            assert (status_of(refused), problem_in(refused)["code"]) == (429, "quota")
            writer.write(GET + TOKEN + b"Connection: close\r\n\r\n")
            assert b" 200 OK" in await answer_of(reader)


async def test_websocket_messages_of_all_sizes_arrive_whole_and_in_order(port: int) -> None:
    sizes = [1, 5_000, 300_000, 0, 1_000_000, *range(500)]
    async with websockets.connect(
        f"ws://127.0.0.1:{port}/", additional_headers={"Authorization": "known"}
    ) as ws:
        sending = asyncio.create_task(_send_all(ws, sizes))
        async with asyncio.timeout(WITHIN_S):
            assert [int(await ws.recv()) for _ in sizes] == sizes
        await sending


async def _ping_without_end(ws: websockets.ClientConnection) -> None:
    while True:
        await ws.ping()
        await asyncio.sleep(0)


async def _send_all(ws: websockets.ClientConnection, sizes: list[int]) -> None:
    for size in sizes:
        await ws.send("x" * size)


async def test_case_30_stranger_with_a_long_message_is_1009_and_with_many_pings_cut_off(port: int) -> None:
    async with websockets.connect(f"ws://127.0.0.1:{port}/") as ws:
        await ws.send("x" * (BOUNDS.first_bytes + 1))
        await asyncio.wait_for(ws.wait_closed(), WITHIN_S)
        assert ws.close_code == 1009
    async with websockets.connect(f"ws://127.0.0.1:{port}/") as ws:
        with pytest.raises(websockets.ConnectionClosed):
            await _ping_without_end(ws)
    await is_served(port)


async def test_case_30_pings_without_end_keep_nobody_waiting(port: int) -> None:
    handshake = (
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    ping = b"\x89\x80\x00\x00\x00\x00"
    async with connected(port) as (reader, writer):
        writer.write(GET + TOKEN + handshake)
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(8):
            writer.write(ping * 40_000)
            await is_served(port)
