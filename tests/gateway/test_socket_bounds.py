"""Case 30 at the sockets of a gateway without a log: a full inbox asked for again and again, and never read."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
import websockets

from gateway.identity.issuer import issue
from gateway.live.live import Live
from gateway.main import GatewayServer, listen
from gateway.service.assembly import assemble
from gateway.service.gateway import Gateway
from gateway.settings import read_settings
from tests.gateway.facts import Partition, held, key_of, new_live, proposed, started, verdict

HOLDS = 600
SILENT = 120
PONG_WITHIN_S = 1.0
WITHIN_S = 60.0


@dataclass(frozen=True)
class Served:
    """A gateway that serves what is at hand, and how to come in."""

    gateway: Gateway
    url: str
    keys: Path

    def token(self, subject: str) -> str:
        return issue(self.keys, subject, ["reviewer"], "acme", "books", None, 3600)

    def socket(self, subject: str, **more: Any) -> websockets.connect:
        header = {"Authorization": f"Bearer {self.token(subject)}"}
        return websockets.connect(self.url, additional_headers=header, max_size=None, **more)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("sockets")
    settings = {
        "data_dir": str(directory),
        "keys_dir": str(directory / "keys"),
        "bootstrap_servers": "127.0.0.1:1",
        "database_url": f"sqlite:///{directory}/views.db",
        "gateway_port": "0",
        "log_signatures": "off",
    }
    gateway = assemble(read_settings(settings))
    live, _ = new_live(gateway.hub)
    for number in range(HOLDS):
        bodies = (started(), proposed(), verdict(), held(hold_id=f"h{number}"))
        Partition(live).write(key_of(f"e{number}"), f"start{number}", *bodies)
    gate: Any = SimpleNamespace(live=live, work=gateway.work, reader=None, grants=gateway.grants)
    gateway._gate = gate
    gateway.caught_up = True
    listening = listen("127.0.0.1", 0)
    gateway.port = listening.getsockname()[1]
    server = GatewayServer(gateway)
    thread = threading.Thread(target=lambda: uvloop.run(server.serve([listening])))
    thread.start()
    yield Served(gateway, f"ws://127.0.0.1:{gateway.port}/v1/ws", directory / "keys")
    server.stop()
    thread.join(WITHIN_S)


def live_of(served: Served) -> Live:
    return served.gateway.gate.live


async def pong(ws: websockets.ClientConnection) -> float:
    """How long a sign of life takes."""
    began = time.perf_counter()
    await ws.send('{"type":"ping","ref":"p"}')
    async with asyncio.timeout(WITHIN_S):
        while json.loads(await ws.recv())["type"] != "pong":
            pass
    return time.perf_counter() - began


async def snapshot(ws: websockets.ClientConnection) -> list[dict[str, Any]]:
    """The items of the next snapshot."""
    items: list[dict[str, Any]] = []
    async with asyncio.timeout(WITHIN_S):
        while True:
            part = json.loads(await ws.recv())
            if part["type"] == "snapshot":
                items += part["items"]
                if not part["more"]:
                    return items


async def test_snapshot_of_a_full_inbox_is_whole_and_unsubscribing_keeps_its_order(served: Served) -> None:
    async with served.socket("anna") as ws:
        await ws.send('{"type":"subscribe","channels":["holds"]}')
        assert {item["hold_id"] for item in await snapshot(ws)} == {f"h{number}" for number in range(HOLDS)}
        await ws.send('{"type":"subscribe","channels":["events"]}')
        await ws.send('{"type":"unsubscribe","channels":["holds","events"]}')
        await snapshot(ws)
        await pong(ws)
        assert served.gateway.hub._by_project == {}


async def test_case_30_five_hundred_snapshots_leave_another_socket_its_own(served: Served) -> None:
    async with served.socket("greedy") as greedy, served.socket("anna") as other:
        for _ in range(500):
            await greedy.send('{"type":"subscribe","channels":["holds"]}')
            await greedy.send('{"type":"unsubscribe","channels":["holds"]}')
        reading = asyncio.create_task(_read_on(greedy))
        taken = sorted([await pong(other) for _ in range(100)])
        reading.cancel()
        assert taken[98] < PONG_WITHIN_S, taken[-5:]


async def _read_on(ws: websockets.ClientConnection) -> None:
    while True:
        await ws.recv()


async def test_case_30_what_waits_for_silent_sockets_is_bounded_for_their_subject(served: Served) -> None:
    budget, limits = served.gateway.budget, served.gateway.settings.limits
    opened = []
    try:
        for _ in range(SILENT):
            ws = await served.socket("silent", max_queue=1, ping_interval=None)
            opened.append(ws)
            for _ in range(4):
                await ws.send('{"type":"subscribe","channels":["holds"]}')
        async with served.socket("anna") as other:
            waiting = [(await pong(other), budget.bytes)[1] for _ in range(50)]
        # Besides what may wait, each socket has one message in hand.
        assert max(waiting) <= limits.subject_bytes + SILENT * 300_000
    finally:
        for ws in opened:
            ws.transport.abort()
    async with asyncio.timeout(WITHIN_S):
        while budget.bytes or len(served.gateway.socket_limit):
            await asyncio.sleep(0.05)
