"""Case 30 at the sockets of a gateway without a log: what their input takes and keeps before it is a message."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import AsyncExitStack
from typing import Any

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import ClientConnection
from websockets.frames import CloseCode, Opcode

from gateway.server.websocket import KEPT_BYTES
from gateway.shares.work import Work
from tests.gateway.test_socket_bounds import LONG, PATHS, WITHIN_S, Served, pong, served

__all__ = ["served"]

# An empty pong of a client: the shortest frame, masked with zeros.
PONG = bytes((0x80 | Opcode.PONG, 0x80)) + bytes(4)
FLOOD_BYTES = 24 * 1024 * 1024
MIB = 1024 * 1024
UNFINISHED = 60
# The server waits for so long for a client's close frame.
CLOSE_WITHIN_S = 10.0


async def opened_raw(served: Served, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection after its handshake, whose frames are written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.gateway.port)
    key = b64encode(bytes(16)).decode()
    writer.write(
        f"GET /v1/ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pieces that the library parses."""
    sizes: list[int] = []
    parse = WebSocketsSansIOProtocol.data_received

    def counted(self: WebSocketsSansIOProtocol, data: bytes) -> None:
        sizes.append(len(data))
        parse(self, data)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", counted)
    return sizes


async def test_case_30_client_that_ignores_the_close_is_read_no_further_and_disconnected(
    served: Served, parsed: list[int]
) -> None:
    reader, writer = await opened_raw(served, "nonsense")
    try:
        closed = await reader.read(MIB)
        while bytes((0x80 | Opcode.CLOSE,)) not in closed:
            closed += await reader.read(MIB)
        del parsed[:]
        async with asyncio.timeout(WITHIN_S):
            while not reader.at_eof() and sum(parsed) < FLOOD_BYTES:
                writer.write(PONG * 10_000)
                await writer.drain()
                await asyncio.sleep(0)
                if not reader.at_eof():
                    await _read_now(reader)
            await reader.read()
        assert reader.at_eof()
        assert sum(parsed) < FLOOD_BYTES / 10
    finally:
        writer.transport.abort()


async def _read_now(reader: asyncio.StreamReader) -> None:
    try:
        async with asyncio.timeout(0.001):
            await reader.read(MIB)
    except TimeoutError:
        return


async def test_case_30_pongs_are_charged_and_read_no_faster_than_their_subject_pays(
    served: Served, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    charged, spent_s, in_debt = Work.received, 0.0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def received(work: Work, owner: tuple[str, str], seconds: float) -> float:
        nonlocal spent_s
        if owner != ("acme", "ponger"):
            return charged(work, owner, seconds)
        spent_s += seconds
        if spent_s:
            loop.call_soon_threadsafe(in_debt.set)
        return 3600.0 if spent_s else 0.0

    monkeypatch.setattr(Work, "received", received)
    reader, writer = await opened_raw(served, served.token("ponger"))
    try:
        assert b"authenticated" in await reader.read(MIB)
        writer.write(PONG * 10)
        async with asyncio.timeout(WITHIN_S):
            await in_debt.wait()
        del parsed[:]
        writer.write(PONG * 10_000)
        async with served.socket("anna") as other:
            for _ in range(10):
                await pong(other)
        assert sum(parsed) < len(PONG) * 10_000
        assert not reader.at_eof(), "it is slowed down, and not disconnected"
    finally:
        writer.transport.abort()


async def test_case_30_messages_without_an_end_are_bounded_for_their_subject(served: Served) -> None:
    budget, limits = served.gateway.budget, served.gateway.settings.limits
    endings: list[asyncio.Task[Any]] = []
    async with AsyncExitStack() as opened:
        for _ in range(UNFINISHED):
            ws = await opened.enter_async_context(served.socket("endless", ping_interval=None))
            endings.append(asyncio.create_task(_closed(ws)))
            await _begin(ws, MIB - 1)
        async with asyncio.timeout(WITHIN_S):
            while not any(ending.done() for ending in endings):
                await asyncio.sleep(0.05)
        assert budget.bytes <= limits.subject_bytes + KEPT_BYTES
        assert {ending.result() for ending in endings if ending.done()} == {CloseCode.TRY_AGAIN_LATER}
        async with served.socket("anna") as other:
            await other.send(LONG)
            assert json.loads(await other.recv())["type"] == "authenticated"
            assert json.loads(await other.recv())["code"] == "invalid"
    async with asyncio.timeout(WITHIN_S):
        while budget.bytes:
            await asyncio.sleep(0.05)


async def _begin(ws: ClientConnection, size: int) -> None:
    """Send the beginning of a message."""
    ws.protocol.send_text(bytes(size), fin=False)
    for data in ws.protocol.data_to_send():
        ws.transport.write(data)
    await asyncio.sleep(0)


async def _closed(ws: ClientConnection) -> int | None:
    await ws.wait_closed()
    return ws.close_code


@pytest.mark.parametrize("path", PATHS)
async def test_message_counts_until_the_next_one_is_asked_for_and_pongs_do_not(
    served: Served, path: str
) -> None:
    budget = served.gateway.budget
    async with served.socket("counted", path) as ws:
        await ws.send(LONG)
        while json.loads(await ws.recv())["type"] != "error":
            pass
        for _ in range(KEPT_BYTES // 100):
            await ws.pong(bytes(100))
        await pong(ws)
        async with asyncio.timeout(WITHIN_S):
            while budget.bytes:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", PATHS)
async def test_case_30_messages_that_wait_for_their_turn_are_all_counted(served: Served, path: str) -> None:
    budget, work = served.gateway.budget, served.gateway.work
    owner = ("acme", f"waiting at {path[1:].replace('/', '-')}")
    work.spend(owner, 600.0)
    short = '{"type":"x"}'
    async with served.socket(owner[1], path) as ws:
        for message in (LONG, LONG, short):
            await ws.send(message)
        async with asyncio.timeout(WITHIN_S):
            while budget.bytes < 2 * len(LONG):
                await asyncio.sleep(0.01)
        assert budget.bytes < 2 * len(LONG) + KEPT_BYTES
    async with asyncio.timeout(WITHIN_S):
        while budget.bytes:
            await asyncio.sleep(0.01)


async def test_case_30_nothing_long_is_kept_for_a_client_after_the_close(served: Served) -> None:
    reader, writer = await opened_raw(served, "nonsense")
    try:
        closed = await reader.read(MIB)
        while bytes((0x80 | Opcode.CLOSE,)) not in closed:
            closed += await reader.read(MIB)
        began = asyncio.get_running_loop().time()
        # A message that is never complete.
        writer.write(bytes((0x81, 0xFF)) + MIB.to_bytes(8, "big") + bytes(4) + bytes(MIB // 2))
        async with asyncio.timeout(WITHIN_S):
            await reader.read()
        assert asyncio.get_running_loop().time() - began < CLOSE_WITHIN_S / 2
    finally:
        writer.transport.abort()
