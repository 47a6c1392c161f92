"""Requests that offer another protocol: each is one request with its whole body, or one refusal, and never two."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.server import websocket
from tests.gateway.test_server_bounds import (
    BOUNDS,
    GET,
    KEY,
    POST,
    VERSION,
    WITHIN_S,
    answer_of,
    connected,
    is_served,
    problem_in,
    served,
    status_of,
)
from tests.gateway.wire import Recorder, fed

BODY = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CLOSE = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + VERSION
KEPT = ("POST", "/", BODY)
LAST = ("GET", "/last", b"")

OFFERS = {
    "h2c": b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    "as curl does": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    "several": b"Connection: Upgrade\r\nUpgrade: h2c, TLS/1.3\r\nUpgrade: IRC/6.9\r\n",
    "several connections": b"Connection: UPGRADE\r\nupgrade: H2C\r\nConnection: keep-alive\r\n",
    "through a proxy": b"Proxy-Connection: upgrade\r\nUpgrade: h2c\r\n",
    "nearly a WebSocket": b"Connection: Upgrade\r\nUpgrade: websocket/13, xwebsocket\r\n",
    "nothing": b"Connection: Upgrade\r\nUpgrade: \r\n",
    "not of this connection": b"Upgrade: websocket\r\n",
}
NO_HANDSHAKES = {
    "POST with a body": (POST + WEBSOCKET + LENGTH, 400),
    "POST without one": (POST + WEBSOCKET, 400),
    "HEAD": (b"HEAD / HTTP/1.1\r\nHost: a\r\n" + WEBSOCKET, 400),
    "GET with a body": (GET + WEBSOCKET + LENGTH, 400),
    "GET with chunks": (GET + WEBSOCKET + b"Transfer-Encoding: chunked\r\n", 400),
    "among others, with a body": (GET + b"Connection: Upgrade\r\nUpgrade: h2c, WebSocket\r\n" + LENGTH, 400),
    "in a second line, with a body": (GET + b"Upgrade: h2c\r\n" + WEBSOCKET + LENGTH, 400),
    "among others": (GET + b"Upgrade: h2c\r\n" + WEBSOCKET, 426),
    "a tunnel": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n" + LENGTH, 405),
    "a tunnel with an offer": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n" + WEBSOCKET, 405),
    "HTTP/2 known before": (b"PRI * HTTP/2.0\r\n", 505),
}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())
async def test_offer_that_is_not_taken_changes_nothing_wherever_it_is_cut(offer: bytes) -> None:
    sent = POST + offer + LENGTH + b"\r\n" + BODY
    for cut in range(len(sent) + 1):
        app = Recorder()
        wire = await fed(app, [sent[:cut], sent[cut:], CLOSE], 2)
        assert (app.handled, wire.answers()) == ([KEPT, LAST], [200, 200]), cut


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())
async def test_requests_with_offers_that_come_in_one_read_are_each_handled(offer: bytes) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    sent = [POST + offer + LENGTH + b"\r\n" + BODY, GET + offer + b"\r\n", POST + offer + chunks, CLOSE]
    app = Recorder()
    wire = await fed(app, [b"".join(sent)], len(sent))
    assert app.handled == [KEPT, ("GET", "/", b""), KEPT, LAST]
    assert wire.answers() == [200] * len(sent)


@pytest.mark.parametrize(("head", "status"), NO_HANDSHAKES.values(), ids=NO_HANDSHAKES.keys())
async def test_handshake_that_is_none_is_refused_and_nothing_behind_it_is_read(
    head: bytes, status: int
) -> None:
    sent = head + b"\r\n" + BODY
    for cut in range(len(sent) + 1):
        app = Recorder()
        wire = await fed(app, [sent[:cut], sent[cut:], CLOSE], 1)
        assert (app.handled, wire.answers(), wire.is_over) == ([], [status], True), cut


@pytest.mark.parametrize(("head", "status"), NO_HANDSHAKES.values(), ids=NO_HANDSHAKES.keys())
async def test_handshake_parsed_in_slices_that_are_always_late_is_refused(
    head: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that stops the gateway in the middle of each slice."""
    monkeypatch.setattr(websocket, "SLICE_S", -1.0)
    app, padded = Recorder(), head + b"X-Filler: %b\r\n" % (b"a" * (websocket.PIECE_BYTES // 2)) * 4
    wire = await fed(app, [padded + b"\r\n" + BODY, CLOSE], 1)
    assert (app.handled, wire.answers(), wire.is_over) == ([], [status], True)


@pytest.mark.parametrize("offer", [WEBSOCKET, OFFERS["h2c"]], ids=["websocket", "h2c"])
async def test_offer_of_http_1_0_is_none(offer: bytes) -> None:
    app = Recorder()
    sent = b"POST / HTTP/1.0\r\n" + offer + LENGTH + b"\r\n"
    wire = await fed(app, [sent, BODY, CLOSE], 1)
    assert (app.handled, wire.answers(), wire.is_over) == ([KEPT], [200], True)


@pytest.mark.parametrize("is_cut", [False, True])
async def test_whatever_comes_behind_a_handshake_before_its_answer_is_no_request(
    is_cut: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for behind in (BODY, b"\x81\x82\0\0\0\0hi", BODY * 1_000):
        app, sent = Recorder(), GET + WEBSOCKET + b"\r\n"
        wire = await fed(app, [sent, behind, CLOSE] if is_cut else [sent + behind, CLOSE], 1)
        assert (app.handled, wire.answers(), wire.is_over) == ([], [400], True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_handshake_behind_a_request_that_is_not_answered_is_refused_behind_its_answer() -> None:
    app = Recorder()
    wire = await fed(app, [GET + b"\r\n" + GET + WEBSOCKET + b"\r\n" + CLOSE, CLOSE], 2)
    assert (wire.answers(), wire.is_over) == ([200, 400], True)
    assert app.handled == [("GET", "/", b"")]


async def test_handshake_that_the_application_refuses_is_answered_and_not_logged_as_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.http.response.start", "status": 503, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"later"})

    wire = await fed(refuse, [GET + WEBSOCKET + b"\r\n"], 1)
    assert (wire.answers(), wire.is_over) == ([503], True)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[int, Recorder]]:
    app = Recorder()
    with served(BOUNDS, app) as (port, _):
        yield port, app


async def test_handshake_behind_an_answered_request_is_taken(live: tuple[int, Recorder]) -> None:
    async with connected(live[0]) as (reader, writer):
        for sent, status in ((GET + b"\r\n", 200), (GET + WEBSOCKET + b"\r\n", 101)):
            writer.write(sent)
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WITHIN_S)
            assert status_of(answer) == status


@pytest.mark.parametrize("is_late", [False, True], ids=["one packet", "two packets"])
@pytest.mark.parametrize("name", ["h2c", "as curl does"])
def test_body_beside_an_offer_is_the_requests_on_a_real_socket(
    live: tuple[int, Recorder], name: str, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    port, app = live
    app.handled.clear()
    head = POST + OFFERS[name] + LENGTH + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), WITHIN_S) as client:
        client.sendall(head if is_late else head + BODY)
        if is_late:
            time.sleep(0.2)
            client.sendall(BODY)
        assert status_of(client.recv(4096)) == 200
        client.sendall(CLOSE)
        rest = b""
        while more := client.recv(4096):
            rest += more
    assert (app.handled, rest.count(b"HTTP/1.1 ")) == ([KEPT, LAST], 1)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket"])
async def test_request_hidden_in_a_body_is_never_handled(live: tuple[int, Recorder], upgrade: bytes) -> None:
    """As it was done through a proxy: blank lines, so that the body comes in many reads, and half of a request."""
    port, app = live
    app.handled.clear()
    body = b"\r\n" * 300_000 + b"POST /smuggled HTTP/1.1\r\nX-Rest: "
    head = POST + b"Connection: Upgrade\r\nUpgrade: %b\r\nContent-Length: %d\r\n\r\n" % (upgrade, len(body))
    async with connected(port) as (reader, writer):
        writer.write(head + body)
        if upgrade == b"websocket":
            answer = await answer_of(reader)
            assert (status_of(answer), problem_in(answer)["code"]) == (400, "malformed")
            assert app.handled == []
        else:
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WITHIN_S)
            writer.write(CLOSE)
            rest = await answer_of(reader)
            assert (status_of(answer), rest.count(b"HTTP/1.1 ")) == (200, 1)
            assert app.handled == [("POST", "/", body), LAST]
    await is_served(port)
