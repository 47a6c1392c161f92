"""Case 30 at the sockets of a gateway without a log: what a subject's sockets can take of it, and what they keep."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
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
from gateway.sockets.ws import FLOOD_REFUSALS_MAX
from gateway.strictjson import parse_object
from tests.gateway.facts import Partition, gate_of, held, key_of, new_live, proposed, started, verdict

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
    thread: threading.Thread

    def token(self, subject: str) -> str:
        return issue(self.keys, subject, ["reviewer"], "acme", "books", None, 3600)

    def socket(self, subject: str, path: str = "/v1/ws", **more: Any) -> websockets.connect:
        header = {"Authorization": f"Bearer {self.token(subject)}"}
        return websockets.connect(self.url + path, additional_headers=header, max_size=None, **more)


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
    gateway._gate = gate_of(live=live, work=gateway.work, reader=None, grants=gateway.grants)
    gateway.caught_up = True
    listening = listen("127.0.0.1", 0)
    gateway.port = listening.getsockname()[1]
    server = GatewayServer(gateway)
    thread = threading.Thread(target=lambda: uvloop.run(server.serve([listening])))
    thread.start()
    yield Served(gateway, f"ws://127.0.0.1:{gateway.port}", directory / "keys", thread)
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


PATHS = ("/v1/ws", "/human-bridge")
# Of the longest messages: each has 80,000 lists, which take 5 MB once they are parsed.
LISTS = 80_000
LONG = '{"type":"x","a":[' + ",".join(["[]"] * LISTS) + "]}"
SHORT = '{"type":"x"}'
TALKERS = 12


async def refused(ws: websockets.ClientConnection) -> dict[str, Any]:
    """The answer to a message that is wrong."""
    async with asyncio.timeout(WITHIN_S):
        while (message := json.loads(await ws.recv()))["type"] != "error":
            pass
    found: dict[str, Any] = message
    return found


@pytest.mark.parametrize("path", PATHS)
async def test_case_30_idle_sockets_keep_none_of_their_messages(served: Served, path: str) -> None:
    gc.collect()
    before = len(gc.get_objects())
    async with AsyncExitStack() as opened:
        sockets = [await opened.enter_async_context(served.socket("talker", path)) for _ in range(TALKERS)]
        for ws in sockets:
            await ws.send(LONG)
            assert (await refused(ws))["code"] == "invalid"
        gc.collect()
        assert len(gc.get_objects()) - before < 2 * LISTS, "of twelve messages"


@pytest.mark.parametrize("path", PATHS)
async def test_case_30_long_messages_are_parsed_on_a_thread_in_their_subjects_turn(
    served: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsing: dict[int, str] = {}
    for module in ("gateway.sockets.verbs", "gateway.sockets.bridge"):

        def parse(raw: bytes) -> dict[str, Any]:
            parsing[len(raw)] = threading.current_thread().name
            return parse_object(raw)

        monkeypatch.setattr(f"{module}.parse_object", parse)
    async with served.socket("talker", path) as ws:
        await ws.send(LONG)
        await refused(ws)
        await ws.send(SHORT)
        await refused(ws)
    loop = served.thread.name
    assert (parsing[len(SHORT)], parsing[len(LONG)] == loop) == (loop, False)


@pytest.mark.parametrize("path", PATHS)
async def test_case_30_client_that_leaves_keeps_no_place_while_its_message_waits_for_its_turn(
    served: Served, path: str
) -> None:
    owner, work = ("acme", f"leaver of {path[1:].replace('/', '-')}"), served.gateway.work
    work.spend(owner, 600.0)
    async with AsyncExitStack() as opened:
        for _ in range(TALKERS):
            ws = await opened.enter_async_context(served.socket(owner[1], path))
            await ws.send(LONG)
        async with asyncio.timeout(WITHIN_S):
            while work._turns.wanted(owner) < TALKERS:
                await asyncio.sleep(0.05)
    async with asyncio.timeout(WITHIN_S):
        while len(served.gateway.socket_limit) or work._turns.wanted(owner):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("first", ["[]", "nonsense", '{"type":"ping"}', '{"type":"publish","prompt":"?"}'])
@pytest.mark.parametrize("path", PATHS)
async def test_first_message_without_a_token_is_the_last(served: Served, path: str, first: str) -> None:
    async with websockets.connect(served.url + path) as ws:
        await ws.send(first)
        assert json.loads(await ws.recv())["type"] == "error"
        async with asyncio.timeout(WITHIN_S):
            await ws.wait_closed()
        assert ws.close_code == 4401


async def test_bridge_stays_open_whatever_number_of_its_messages_was_refused(served: Served) -> None:
    async with served.socket("talker", "/human-bridge") as ws:
        for _ in range(FLOOD_REFUSALS_MAX + 1):
            await ws.send('{"type":"nothing","task_id":"t"}')
            assert (await refused(ws))["task_id"] == "t"
        await pong(ws)
