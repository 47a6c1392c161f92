"""Case 30 of the abuse list: whatever one caller sends, or asks for and never reads, others are answered in time."""

from __future__ import annotations

import asyncio
import json
import socket as socketlib
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from schemas.limits import OPEN_MAX
from tests.integration.doors import ANSWER_WITHIN_S, Tenant, fresh, new_tenant, socket
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.alone]

POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""
OPEN_HOLDS = 150
VERDICT_WITHIN_S = 1.0
TRIES = 3
GROWTH_MAX_BYTES = 160 * 1024 * 1024
SILENT_SOCKETS = 400
LISTS_AT_ONCE = 100
HEADERS = b"GET /v1/holds HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(scope="module")
def crowded(site: Site) -> Iterator[Tenant]:
    """A tenant with a full inbox."""
    with new_tenant(site, POLICY) as tenant:
        execution_id = tenant.execution()
        arguments = {"text": "x" * 2_000, "amount": 5}
        with ThreadPoolExecutor(8) as pool:
            calls = [
                pool.submit(tenant.propose, execution_id, "send_money", arguments, f"c{number}")
                for number in range(OPEN_HOLDS)
            ]
            assert all(call.result()["status"] == "held" for call in calls)
        yield tenant


@pytest.fixture(scope="module")
def victim(site: Site) -> Iterator[Tenant]:
    with new_tenant(site) as tenant:
        yield tenant


def resident_bytes(site: Site) -> int:
    """What the gateway has in memory."""
    pages = Path(f"/proc/{site.stack.pid('gateway')}/statm").read_text().split()[1]
    return int(pages) * 4096


async def others_are_answered(victim: Tenant, during: Callable[[list[float]], Awaitable[None]]) -> None:
    """Another tenant's verdicts while something goes on: each within the bound, at the 99th percentile.

    Args:
        victim: the other tenant.
        during: what goes on; it is given the seconds that the verdicts have taken so far. It is done again where they
            took too long: whoever shares the machine takes seconds too, but not each time.
    """
    slowest: list[float] = []
    for _ in range(TRIES):
        taken = await _taken(victim, during)
        assert len(taken) >= 10
        slowest.append(sorted(taken)[int(len(taken) * 0.99)])
        if slowest[-1] < VERDICT_WITHIN_S:
            return
    raise AssertionError(f"verdicts took {slowest} s at the 99th percentile")


async def _taken(victim: Tenant, during: Callable[[list[float]], Awaitable[None]]) -> list[float]:
    taken: list[float] = []
    async with httpx.AsyncClient(base_url=victim.site.url, timeout=ANSWER_WITHIN_S) as client:
        verdict = partial(_verdict, client, victim, victim.execution())
        await verdict()
        # In a group: a verdict that is none ends whatever goes on.
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_ask_on(verdict, taken))
            await during(taken)
            asking.cancel()
    return taken


async def _ask_on(verdict: Callable[[], Awaitable[None]], taken: list[float]) -> None:
    # No more than one run can have open: what goes on may need longer to come to its end.
    while len(taken) < OPEN_MAX - 10:
        started = time.perf_counter()
        await verdict()
        taken.append(time.perf_counter() - started)
        await asyncio.sleep(0.02)


async def _verdict(client: httpx.AsyncClient, victim: Tenant, execution_id: str) -> None:
    body = {"call_id": fresh("c"), "tool": "read_file", "arguments": {}}
    headers = {"Authorization": f"Bearer {victim.bot.token}"}
    answer = await client.post(f"/v1/executions/{execution_id}/tool-calls", json=body, headers=headers)
    assert answer.json()["status"] == "released", answer.text


def address(site: Site) -> tuple[str, int]:
    host, _, port = site.url.removeprefix("http://").partition(":")
    return host, int(port)


async def test_case_30_endless_headers_and_half_sent_ones_of_strangers(site: Site, victim: Tenant) -> None:
    before = resident_bytes(site)

    async def sending(taken: list[float]) -> None:
        with ExitStack() as opened:
            endless = [asyncio.create_task(asyncio.to_thread(_endless_header, site)) for _ in range(4)]
            await asyncio.to_thread(_half_sent_headers, site, opened)
            while len(taken) < 60:
                await asyncio.sleep(0.05)
            statuses = await asyncio.gather(*endless)
        assert set(statuses) <= {b"431", b""}

    await others_are_answered(victim, sending)
    assert resident_bytes(site) - before < GROWTH_MAX_BYTES


def _endless_header(site: Site) -> bytes:
    with socketlib.create_connection(address(site), timeout=ANSWER_WITHIN_S) as endless:
        try:
            endless.sendall(HEADERS + b"A: ")
            for _ in range(500):
                endless.sendall(b"a" * 64 * 1024)
        except OSError:
            return b""
        return endless.recv(12)[9:]


def _half_sent_headers(site: Site, opened: ExitStack) -> None:
    for _ in range(1_500):
        half = opened.enter_context(socketlib.create_connection(address(site)))
        half.sendall(HEADERS + b"A: " + b"a" * 2_000)


async def test_case_30_five_hundred_snapshots_asked_for_over_one_socket(
    site: Site, crowded: Tenant, victim: Tenant
) -> None:
    before = resident_bytes(site)
    kinds: set[str] = set()

    async def subscribing(taken: list[float]) -> None:
        async with socket(site, crowded.rita.token, max_size=None) as ws, asyncio.TaskGroup() as group:
            reading = group.create_task(_read_snapshots(ws, kinds))
            for _ in range(500):
                await ws.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
                await ws.send(json.dumps({"type": "unsubscribe", "channels": ["holds"]}))
            while len(taken) < 100:
                await asyncio.sleep(0.05)
            reading.cancel()

    await others_are_answered(victim, subscribing)
    assert "snapshot" in kinds
    assert resident_bytes(site) - before < GROWTH_MAX_BYTES


async def _read_snapshots(ws: websockets.ClientConnection, kinds: set[str]) -> None:
    async for text in ws:
        message = json.loads(text)
        assert message["type"] in ("snapshot", "error", "resync_required"), message
        kinds.add(message["type"])
    raise AssertionError("the gateway closed the socket")


async def test_case_30_silent_sockets_of_one_subject_are_bounded_together(
    site: Site, crowded: Tenant, victim: Tenant
) -> None:
    before = resident_bytes(site)
    url = site.url.replace("http://", "ws://") + "/v1/ws"
    header = {"Authorization": f"Bearer {crowded.rita.token}"}
    unread: dict[str, Any] = {
        "max_queue": 1,
        "ping_interval": None,
        "max_size": None,
        "additional_headers": header,
    }

    async def unreading(taken: list[float]) -> None:
        with ExitStack() as opened:
            for _ in range(SILENT_SOCKETS):
                ws = await websockets.connect(url, **unread)
                opened.callback(ws.transport.abort)
                await _ask_without_reading(ws)
            while len(taken) < 60:
                await asyncio.sleep(0.05)
            assert resident_bytes(site) - before < GROWTH_MAX_BYTES

    await others_are_answered(victim, unreading)


async def _ask_without_reading(ws: websockets.ClientConnection) -> None:
    for _ in range(5):
        await ws.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))


async def test_case_30_lists_without_end_leave_others_theirs(
    site: Site, crowded: Tenant, victim: Tenant
) -> None:
    headers = {"Authorization": f"Bearer {crowded.rita.token}"}
    paths = ("/v1/holds?status=open&limit=500", "/v1/holds?limit=500", "/v1/holds/groups")
    answers: list[httpx.Response] = []

    async def listing(taken: list[float]) -> None:
        async with (
            httpx.AsyncClient(base_url=site.url, timeout=ANSWER_WITHIN_S, headers=headers) as client,
            asyncio.TaskGroup() as group,
        ):

            async def ask_on() -> None:
                while len(taken) < 150:
                    answers.append(await client.get(paths[len(answers) % 3]))

            for _ in range(LISTS_AT_ONCE):
                group.create_task(ask_on())

    await others_are_answered(victim, listing)
    # Lists beyond a share are refused, and those that wait too long for earlier ones of their subject.
    assert {answer.status_code for answer in answers} <= {200, 429, 503}
    assert any(answer.status_code == 200 for answer in answers)
    assert all("retry-after" in answer.headers for answer in answers if answer.status_code != 200)


MANY_CONDITIONS = "policy: own\nrules:\n" + "".join(
    f'  - {{id: r{number}, when: "args.l.exists(x, x == {number}.5)", then: deny}}\n' for number in range(480)
)


async def test_case_30_policy_of_many_conditions_on_long_lists_leaves_others_theirs(
    site: Site, victim: Tenant
) -> None:
    with new_tenant(site, MANY_CONDITIONS) as heavy:
        execution_id = heavy.execution()

        async def proposing(taken: list[float]) -> None:
            path = f"/executions/{execution_id}/tool-calls?wait=0"
            calls = [
                asyncio.to_thread(
                    heavy.bot.post,
                    path,
                    {"call_id": fresh("c"), "tool": "send_money", "arguments": {"l": [0] * 15_000}},
                )
                for _ in range(4)
            ]
            told = [answer.json() for answer in await asyncio.gather(*calls)]
            # The tenant's share of the decider may be used up by the first of them.
            ends = {answer.get("code") or answer["status"] for answer in told}
            assert "held" in ends
            assert ends <= {"held", "quota"}
            while len(taken) < 150:
                await asyncio.sleep(0.05)

        await others_are_answered(victim, proposing)
