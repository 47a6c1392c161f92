"""Where one request of a connection ends and the next begins: as many are handled as were sent, whole, however they
are cut; and what two readers could read differently is one refusal, behind which nothing is read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.server.bounds import Bounds
from tests.gateway.test_server_bounds import (
    GET,
    POST,
    WITHIN_S,
    answer_of,
    asked,
    connected,
    served,
    status_of,
)
from tests.gateway.test_upgrades import OFFERS
from tests.gateway.wire import Handled, Recorder, fed

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
LENGTH = b"Content-Length: 5\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

HEADS = {
    "two lengths": POST + LENGTH + b"Content-Length: 40\r\n\r\nhello",
    "one length twice": POST + LENGTH + LENGTH + b"\r\nhello",
    "a list of lengths": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "length with a sign": POST + b"Content-Length: +5\r\n\r\nhello",
    "length in hexadecimal": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "no length": POST + b"Content-Length: \r\n\r\nhello",
    "length of more than 64 bits": POST + b"Content-Length: 18446744073709551621\r\n\r\nhello",
    "length, then chunks": POST + LENGTH + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks, then length": POST + CHUNKED + LENGTH + b"\r\n0\r\n\r\n",
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks under another coding": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "nearly chunks": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks in quotes": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunks behind a control character": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "no coding": POST + b"Transfer-Encoding: \r\n\r\n0\r\n\r\n",
    "chunks of HTTP/1.0": b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "length in a folded line": POST + b"Content-Length:\r\n 5\r\n\r\nhello",
    "chunks in a folded line": POST + b"Transfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n",
    "folded line": GET + b"A: b\r\n Content-Length: 5\r\n\r\n",
    "space before the first header": b"POST / HTTP/1.1\r\n " + LENGTH + b"\r\nhello",
    "space before the colon": POST + b"Content-Length : 5\r\n\r\nhello",
    "tab before the colon": POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "space in a name": POST + b"A Content-Length: 5\r\n\r\nhello",
    "no colon": POST + b"Content-Length\r\n\r\nhello",
    "no name": POST + b": 5\r\n\r\nhello",
    "bare LF behind the line": b"POST / HTTP/1.1\nHost: a\r\n\r\n",
    "bare LF behind a header": POST + b"A: b\n" + LENGTH + b"\r\nhello",
    "bare LF behind the head": POST + LENGTH + b"\nhello",
    "bare CR in a header": POST + b"A: b\r" + LENGTH + b"\r\nhello",
    "zero byte in a header": POST + b"A: \0\r\n\r\n",
    "zero byte in a name": POST + b"Content-Length\0: 5\r\n\r\nhello",
    "target without a path": b"GET http://host HTTP/1.1\r\nHost: a\r\n\r\n",
    "target with a port of five nines": b"GET http://h:99999/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "target without a host": b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n",
    "HTTP/0.9 by its number": b"GET / HTTP/0.9\r\n\r\n",
    "HTTP/1.2": b"GET / HTTP/1.2\r\n\r\n",
    "HTTP/2": b"POST / HTTP/2.0\r\n" + LENGTH + b"\r\nhello",
    "space behind the version": b"GET / HTTP/1.1 \r\n\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\n\r\n",
    "no method": b"5\r\nhello\r\n0\r\n\r\n",
}
CHUNKS = {
    "space behind the size": b"5 \r\nhello\r\n0\r\n\r\n",
    "space before the size": b" 5\r\nhello\r\n0\r\n\r\n",
    "size with a prefix": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "negative size": b"-5\r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "size of more than 64 bits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "bare LF behind the size": b"5\nhello\r\n0\r\n\r\n",
    "bare CR behind the size": b"5\rhello\r\n0\r\n\r\n",
    "bare LF in an extension": b"5;a\nhello\r\n0\r\n\r\n",
    "bare LF in a quoted extension": b'5;a="\n"\r\nhello\r\n0\r\n\r\n',
    "line's end in a quoted extension": b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
    "space before an extension": b"5 ;a=b\r\nhello\r\n0\r\n\r\n",
    "bare LF behind the data": b"5\r\nhello\n0\r\n\r\n",
    "no line's end behind the data": b"5\r\nhello0\r\n\r\n",
    "more data than its size": b"5\r\nhello!\r\n0\r\n\r\n",
    "bare LF at the end": b"5\r\nhello\r\n0\r\n\n",
    "length behind the body": b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    "chunks behind the body": b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
}
AMBIGUOUS = HEADS | {f"chunk: {name}": POST + CHUNKED + b"\r\n" + sent for name, sent in CHUNKS.items()}


@dataclass(frozen=True)
class Sent:
    """A request, and what is to become of it."""

    wire: bytes
    handled: Handled


@st.composite
def chunks(draw: st.DrawFn, body: bytes) -> bytes:
    """A body in chunks of any sizes, with extensions and fields behind it."""
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    extension = draw(st.sampled_from([b"", b";a", b";a=b", b';a="0;b"']))
    written = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts if part)
    return written + b"0\r\n" + draw(st.sampled_from([b"", b"A: b\r\n", b"Upgrade: h2c\r\n"])) + b"\r\n"


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """A request of any method and framing, with or without an offer to go on in another protocol."""
    method = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE"]))
    path = f"/{draw(st.integers(0, 99))}"
    body = draw(st.one_of(st.just(b""), st.just(SMUGGLED), st.binary(max_size=300), st.just(b"\r\n" * 9_000)))
    head = draw(st.sampled_from([b"", b"\r\n"])) + f"{method} {path} HTTP/1.1\r\nHost: a\r\n".encode()
    head += draw(st.sampled_from([b"", b"Empty:\r\n", b"Spaced: \t a b \t\r\n"]))
    offer = draw(st.sampled_from([b"", b"", *OFFERS.values()]))
    if draw(st.booleans()):
        framing, rest = CHUNKED, draw(chunks(body))
    else:
        framing, rest = b"Content-Length: %d\r\n" % len(body) if body else b"", body
    fields = [offer, framing]
    if draw(st.booleans()):
        fields.reverse()
    return Sent(head + b"".join(fields) + b"\r\n" + rest, (method, path, body))


def cut(sent: bytes, places: list[int]) -> list[bytes]:
    """The bytes in reads that end at these places, counted around."""
    ends = sorted({place % (len(sent) + 1) for place in places})
    return [sent[start:end] for start, end in zip([0, *ends], [*ends, len(sent)], strict=True)]


PLACES = st.lists(st.integers(0, 100_000), max_size=12)


@given(st.lists(requests(), min_size=1, max_size=6), PLACES)
def test_as_many_requests_are_handled_as_were_sent_each_with_its_body(
    sent: list[Sent], places: list[int]
) -> None:
    app = Recorder()
    reads = cut(b"".join(request.wire for request in sent) + LAST, places)
    wire = asyncio.run(fed(app, reads, len(sent) + 1))
    assert app.handled == [*(request.handled for request in sent), ("GET", "/last", b"")]
    assert wire.answers() == [200] * (len(sent) + 1)
    assert wire.is_over


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
async def test_what_two_readers_could_read_differently_is_one_refusal_wherever_it_is_cut(head: bytes) -> None:
    sent = head + SMUGGLED + LAST
    for reads in [
        [sent],
        cut(sent, list(range(len(sent)))),
        *([sent[:at], sent[at:]] for at in range(len(head))),
    ]:
        app = Recorder()
        wire = await fed(app, reads, 1)
        assert wire.is_over, reads
        assert app.handled == [], reads
        assert len(wire.answers()) == 1, reads
        assert wire.answers()[0] in (400, 501, 505), reads


@given(st.sampled_from(sorted(AMBIGUOUS)), st.lists(requests(), min_size=1, max_size=3), PLACES)
def test_what_came_before_a_refusal_is_handled_and_answered_and_nothing_behind_it(
    name: str, sent: list[Sent], places: list[int]
) -> None:
    app = Recorder()
    reads = cut(b"".join(request.wire for request in sent) + AMBIGUOUS[name] + SMUGGLED + LAST, places)
    wire = asyncio.run(fed(app, reads, len(sent) + 1))
    assert wire.is_over
    assert app.handled == [request.handled for request in sent]
    *answers, refusal = wire.answers()
    assert answers == [200] * len(sent)
    assert refusal in (400, 501, 505)


@pytest.mark.parametrize("name", CHUNKS)
def test_request_whose_body_is_refused_before_its_turn_is_not_handled(name: str) -> None:
    app = Recorder()
    wire = asyncio.run(
        fed(app, [(GET + b"\r\n") * 2 + POST + CHUNKED + b"\r\n" + CHUNKS[name] + SMUGGLED], 3)
    )
    assert (wire.answers(), wire.is_over) == ([200, 200, 400], True)
    assert app.handled == [("GET", "/", b"")] * 2


VERSIONS = {
    b" HTTP/1.2": 505,
    b" HTTP/2.0": 505,
    b" HTTP/3.0": 505,
    b" HTTP/3": 505,
    b" HTTP/11.1": 505,
    b" HTTP/0.9": 505,
    b"": 505,
    b" http/1.1": 400,
    b" HTTX/1.1": 400,
    b" HTTP/a.1": 400,
    b" HTTP/1.": 400,
    b" HTTP/1.1 ": 400,
}


@pytest.mark.parametrize("version", VERSIONS, ids=repr)
async def test_other_version_is_505_and_what_is_none_400(version: bytes) -> None:
    sent = b"GET /" + version + b"\r\nHost: a\r\n\r\n"
    for place in range(len(sent)):
        app = Recorder()
        wire = await fed(app, [sent[:place], sent[place:]], 1)
        assert (wire.answers(), wire.is_over, app.handled) == ([VERSIONS[version]], True, [])


@pytest.mark.parametrize("behind", [b"SM\r\n\r\n", b"SM\r\n\r\n" + bytes(9), b"GET"])
async def test_preface_of_http_2_is_another_version(behind: bytes) -> None:
    sent = b"PRI * HTTP/2.0\r\n\r\n" + behind
    for place in range(len(sent)):
        app = Recorder()
        wire = await fed(app, [sent[:place], sent[place:]], 1)
        assert (wire.answers(), wire.is_over, app.handled) == ([505], True, [])


async def test_refusal_behind_an_answer_that_takes_its_time_waits_for_it() -> None:
    """What comes meanwhile is dropped, and the clock of the head that is refused ends nothing."""
    bounds = Bounds(head_s=0.01)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(5 * bounds.head_s)
        await Recorder()(scope, receive, send)

    wire = await fed(slow, [GET + b"\r\n" + b"GARBAGE\r\n\r\n", SMUGGLED, LAST], 2, bounds)
    assert (wire.answers(), wire.is_over) == ([200, 400], True)


@pytest.mark.parametrize("is_cut", [False, True])
async def test_connection_that_ends_in_the_fields_behind_a_body_ends_with_its_answer(is_cut: bool) -> None:
    """The parser reads nothing behind it; a proxy that kept the connection would wait for answers that never come."""
    sent = POST + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nConnection: close\r\n\r\n"
    app = Recorder()
    wire = await fed(app, [sent, SMUGGLED] if is_cut else [sent + SMUGGLED], 2)
    assert (app.handled, wire.answers(), wire.is_over) == ([("POST", "/", b"hello")], [200], True)


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[int, Recorder]]:
    app = Recorder()
    with served(Bounds(), app) as (port, _):
        yield port, app


@settings(max_examples=40)
@given(st.lists(requests(), min_size=1, max_size=6), PLACES, st.sets(st.integers(0, 12)))
def test_as_many_requests_are_handled_as_were_sent_on_a_real_socket(
    live: tuple[int, Recorder], sent: list[Sent], places: list[int], pauses: set[int]
) -> None:
    port, app = live
    app.handled.clear()
    answers = b""
    with socket.create_connection(("127.0.0.1", port), WITHIN_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, part in enumerate(cut(b"".join(request.wire for request in sent) + LAST, places)):
            client.sendall(part)
            if number in pauses:
                client.settimeout(0.01)
                answers += _some(client)
        client.settimeout(WITHIN_S)
        while more := client.recv(65536):
            answers += more
    assert app.handled == [*(request.handled for request in sent), ("GET", "/last", b"")]
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b"HTTP/1.1 ") == len(sent) + 1


def _some(client: socket.socket) -> bytes:
    """What has come until now, so that the server had time to read."""
    try:
        return client.recv(65536)
    except TimeoutError:
        return b""


def head_of(size: int, headers: int = 1) -> bytes:
    """A request whose line and headers have so many bytes, with no blanks around the values."""
    start = b"GET / HTTP/1.1\r\nHost:a\r\nConnection:close\r\n" + b"A:b\r\n" * (headers - 1)
    end = b"\r\n\r\n"
    return start + b"B:" + b"b" * (size - len(start) - len(b"B:") - len(end)) + end


@pytest.mark.parametrize("headers", [1, 90])
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
async def test_case_30_head_is_counted_to_the_byte(headers: int, over: int, status: int) -> None:
    bounds = Bounds(linger_s=0.2)
    with served(bounds) as (port, _):
        assert status_of(await asked(port, head_of(bounds.head_bytes + over, headers))) == status


async def test_head_within_its_bounds_behind_other_requests_is_not_counted_with_them() -> None:
    before = b"GET / HTTP/1.1\r\nHost:a\r\nB:" + b"b" * 7_000 + b"\r\n\r\n"
    head = head_of(Bounds().head_bytes)
    with served(Bounds(linger_s=0.2)) as (port, _):
        async with connected(port) as (reader, writer):
            writer.write(before * 2 + head[:9_000])
            first = [await reader.readuntil(b"\r\n\r\n") for _ in range(2)]
            writer.write(head[9_000:])
            answers = b"".join([*first, await answer_of(reader)])
    assert answers.count(b" 200 OK") == 3


@pytest.mark.parametrize(
    "chunks",
    [b"1\r\na\r\n" * 12_000, b"5;" + b"e" * 47_000 + b"\r\nhello\r\n"],
    ids=["of one byte", "with an extension"],
)
@pytest.mark.parametrize("padding", [1, 16_000], ids=["short head", "long head"])
async def test_case_30_chunks_whose_framing_is_within_its_bound_are_taken(
    chunks: bytes, padding: int
) -> None:
    head = POST + b"Connection: close\r\nA: " + b"a" * padding + b"\r\n" + CHUNKED + b"\r\n"
    with served(Bounds()) as (port, _):
        assert status_of(await asked(port, head + chunks + b"0\r\n\r\n")) == 200
