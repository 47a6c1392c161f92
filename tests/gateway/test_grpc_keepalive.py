"""Connections of gRPC on which nothing happens: clients may ping, who is gone is noticed, and a watch says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from tests.gateway.rpc_gateway import Code, Site, client_of, ended, rpc_site

WATCH = pb.WatchHumanInputRequest(task_id="t")
PINGING = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 200),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
# RFC 9113: what a client sends first; the bytes of a frame's head, of which [3] is the type and [4] the flags.
PREFACE, HEAD_BYTES, PING, ACK = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 9, 6, 1


@dataclass(slots=True)
class Relay:
    """A NAT between clients and the server.

    Attributes:
        address: where clients connect.
        pings: those that clients have sent.
        forgets: if set, neither side hears of the other any more, nor that it is gone.
    """

    address: str = ""
    pings: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    forgets: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self, target: str, client: Any, answers: asyncio.StreamWriter) -> None:
        """Pass on what both sides send."""
        host, _, port = target.rpartition(":")
        server, requests = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(self._requests(client, requests), self._answers(server, answers))
        except (asyncio.IncompleteReadError, ConnectionError):
            # One side has ended: so does the other.
            pass
        finally:
            for writer in (requests, answers):
                writer.close()

    async def _requests(self, client: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        server.write(await client.readexactly(len(PREFACE)))
        while True:
            head = await client.readexactly(HEAD_BYTES)
            frame = head + await client.readexactly(int.from_bytes(head[:3]))
            if self.forgets.is_set():
                continue
            server.write(frame)
            if head[3] == PING and not head[4] & ACK:
                self.pings.put_nowait(None)

    async def _answers(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while read := await server.read(65_536):
            if not self.forgets.is_set():
                client.write(read)
        raise ConnectionResetError


@asynccontextmanager
async def relay_before(site: Site) -> AsyncIterator[Relay]:
    """Relay to a server."""
    relay = Relay()
    connections = set[asyncio.Task[None]]()

    def connected(client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        connections.add(asyncio.ensure_future(relay.connect(site.address, client, answers)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    relay.address = "127.0.0.1:{1}".format(*server.sockets[0].getsockname())
    try:
        yield relay
    finally:
        server.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def test_client_that_pings_keeps_its_watch_and_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.rpc.keepalive.LEAST_BETWEEN_MS", 20)
    async with (
        rpc_site(tmp_path) as site,
        relay_before(site) as relay,
        grpc.aio.insecure_channel(relay.address, PINGING) as channel,
    ):
        tasks: Any = rpc.HumanInputStub(channel)
        watch = tasks.WatchHumanInput(WATCH, metadata=site.by("bot"))
        assert (await watch.read()).status == "waiting_for_human"
        for _ in range(10):
            await relay.pings.get()
        assert not watch.done()
        watch.cancel()
        # Between two calls it pings on.
        for _ in range(10):
            await relay.pings.get()
        assert channel.get_state() is grpc.ChannelConnectivity.READY


async def test_client_that_vanished_without_a_word_leaves_its_places_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.rpc.keepalive.EVERY_MS", 500)
    monkeypatch.setattr("gateway.rpc.keepalive.ANSWER_WITHIN_MS", 500)
    async with (
        rpc_site(tmp_path, calls_at_once=1) as site,
        relay_before(site) as relay,
        grpc.aio.insecure_channel(relay.address, (("grpc.use_local_subchannel_pool", 1),)) as channel,
        client_of(site) as again,
    ):
        tasks: Any = rpc.HumanInputStub(channel)
        watch = tasks.WatchHumanInput(WATCH, metadata=site.by("bot"))
        assert (await watch.read()).status == "waiting_for_human"
        run = pb.RunRequest(prompt="?")
        code, _, own = await ended(again.tool.Run(run, metadata=site.by("bot")))
        assert (code, own) == (Code.RESOURCE_EXHAUSTED, "quota")
        relay.forgets.set()
        async with asyncio.timeout(20):
            while await again.tool.Run(run, metadata=site.by("bot")).code() is not Code.OK:
                await asyncio.sleep(0.05)
        watch.cancel()


async def test_watch_tells_the_state_again_so_that_proxies_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.rpc.servicers.WATCH_S", 0.2)
    monkeypatch.setattr("gateway.rpc.servicers.TELL_AGAIN_S", 0.1)
    monkeypatch.setattr("gateway.rpc.servicers.ASK_EVERY_S", 0.0)
    async with rpc_site(tmp_path) as site, client_of(site) as client:
        watch = client.tasks.WatchHumanInput(WATCH, metadata=site.by("bot"), timeout=30)
        told = [(await watch.read()).status for _ in range(3)]
        assert told == ["waiting_for_human"] * 3
        watch.cancel()
