"""What no client of a WebSocket sends: it ends its own connection, and is no error of the gateway's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from tests.gateway.test_server_bounds import (
    BOUNDS,
    GET,
    KEY,
    TOKEN,
    VERSION,
    WITHIN_S,
    answer_of,
    asked,
    connected,
    is_served,
    problem_in,
    served,
    status_of,
)

HANDSHAKE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def frame(opcode: int, payload: bytes, *, first: int = 0x80, masked: bool = True) -> bytes:
    length = len(payload)
    head = bytes([first | opcode, (0x80 if masked else 0) | (length if length < 126 else 126)])
    return head + (b"" if length < 126 else length.to_bytes(2)) + (b"\0\0\0\0" if masked else b"") + payload


STRANGE = {
    "text that is no UTF-8": frame(1, b"\xff\xfe"),
    "text that is half a character": frame(1, b"\xed\xa0\x80"),
    "parts that are no UTF-8": frame(1, b"\xe2", first=0) + frame(0, b"x"),
    "binary": frame(2, b"\xff\xfe"),
    "unmasked": frame(1, b"{}", masked=False),
    "reserved bit": frame(1, b"{}", first=0xC0),
    "unknown kind": frame(3, b"x"),
    "long ping": frame(9, b"x" * 126),
    "part of nothing": frame(0, b"x"),
    "text within a text": frame(1, b"a", first=0) + frame(1, b"b"),
    "close with half a code": frame(8, b"\x03"),
    "close with no code": frame(8, (999).to_bytes(2)),
    "close with a reason that is no UTF-8": frame(8, (1000).to_bytes(2) + b"\xff"),
    "text after a close": frame(8, (1000).to_bytes(2)) + frame(1, b"\xff\xfe"),
    "texts and then none": frame(1, b"{}") * 50 + frame(1, b"\xff\xfe") + frame(1, b"{}"),
    "compressed by nobody": frame(1, b"\xff\xff\xff", first=0xC0),
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(BOUNDS) as (found, _):
        yield found


@pytest.mark.parametrize("sent", STRANGE.values(), ids=list(STRANGE))
@pytest.mark.parametrize(
    "more", [b"", b"Sec-WebSocket-Extensions: permessage-deflate\r\n"], ids=["", "deflate"]
)
async def test_case_30_strange_frames_end_their_connection_and_write_no_traceback(
    port: int, caplog: pytest.LogCaptureFixture, sent: bytes, more: bytes
) -> None:
    async with connected(port) as (reader, writer):
        writer.write(GET + HANDSHAKE + more + b"\r\n")
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        # Whatever is still open then ends in order.
        writer.write(frame(8, (1000).to_bytes(2)))
        await answer_of(reader)
    await is_served(port)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    "head",
    [
        GET.replace(b"/ ", b"/\xff\xfe ") + HANDSHAKE,
        GET.replace(b"/ ", b"/%ff%fe?%ff ") + HANDSHAKE,
        GET.replace(b"/ ", b"/?\xff ") + HANDSHAKE,
        GET.replace(b"/ ", b"//[ ") + HANDSHAKE,
        GET + b"A: \xff\xfe\r\n" + HANDSHAKE,
        GET + HANDSHAKE + b"Sec-WebSocket-Protocol: \xff, ,\r\n",
        GET + HANDSHAKE + b"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99\r\n",
        GET + HANDSHAKE + b"Sec-WebSocket-Extensions: \xff;;=,\r\n",
        GET + HANDSHAKE.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"\xff"),
        GET + HANDSHAKE.replace(b": 13", b": 99999999999999999999"),
        GET + HANDSHAKE + b"Origin: \xff\r\nOrigin: b\r\n",
        GET + HANDSHAKE + b"Content-Length: 5\r\n",
        GET + HANDSHAKE + b"Transfer-Encoding: chunked\r\n",
        GET.replace(b"GET", b"PUT") + HANDSHAKE,
    ],
)
async def test_case_30_strange_handshakes_write_no_traceback(
    port: int, caplog: pytest.LogCaptureFixture, head: bytes
) -> None:
    async with connected(port) as (reader, writer):
        writer.write(head + b"\r\n")
        async with asyncio.timeout(WITHIN_S):
            # It is opened, or answered and ended, or ended.
            if b" 101 " in await reader.read(4_096):
                writer.write(frame(8, (1000).to_bytes(2)))
            await reader.read()
    await is_served(port)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(1, b"a", first=0) + frame(0, b"", first=0) * 1_026, 1009),
        (frame(9, b"") * 17, 1008),
    ],
    ids=["fragments", "pings before the token"],
)
async def test_case_30_socket_over_a_limit_is_closed_with_its_code(port: int, sent: bytes, code: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(GET + HANDSHAKE + b"\r\n")
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        answer = await answer_of(reader)
    # The last frame: FIN and close, its length, and the code.
    start = answer.rindex(b"\x88")
    assert int.from_bytes(answer[start + 2 : start + 4]) == code


async def test_case_30_what_the_application_still_sends_after_a_strange_frame_writes_no_traceback(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(port) as (reader, writer):
        writer.write(GET + TOKEN + HANDSHAKE + b"\r\n")
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        for _ in range(20):
            # Nobody reads the answers, so that the application is in the middle of sending one.
            writer.write(frame(1, b"x" * 60_000) * 20)
        writer.write(frame(1, b"\xff\xfe"))
        await answer_of(reader)
    await is_served(port)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"A: " + b"a" * 9_000 + b"\r\n" + KEY + VERSION, 431, "a line of a handshake"),
        (b"", 400, "Sec-WebSocket-Key"),
        (VERSION, 400, "Sec-WebSocket-Key"),
        (KEY, 400, "Sec-WebSocket-Version"),
        (KEY + b"Sec-WebSocket-Version: 8\r\n", 400, "Sec-WebSocket-Version header: 8"),
        (KEY + b"Sec-WebSocket-Version: 14\r\n", 400, "Sec-WebSocket-Version header: 14"),
        (KEY + VERSION + b"Content-Length: 5\r\n", 400, "not a WebSocket handshake"),
        (KEY + VERSION + b"Transfer-Encoding: chunked\r\n", 400, "not a WebSocket handshake"),
    ],
    ids=["long line", "nothing", "no key", "no version", "version 8", "version 14", "body", "chunks"],
)
async def test_handshake_that_is_none_is_told_so_in_a_problem_document(
    port: int, sent: bytes, status: int, said: str
) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    answer = await asked(port, GET + TOKEN + upgrade + sent + b"\r\n")
    assert status_of(answer) == status
    document = problem_in(answer)
    assert (document["status"], said in document["detail"]) == (status, True), document
    assert document["code"] == ("header_too_large" if status == 431 else "malformed")
    # RFC 6455, section 4.4
    assert (b"sec-websocket-version: 13" in answer.lower()) is (status == 400)
