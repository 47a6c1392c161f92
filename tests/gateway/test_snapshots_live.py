"""An inbox of several megabytes: every client takes its snapshot, and nothing of it is lost on the way."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from gateway.settings import Limits
from gateway.sockets.snapshots import PART_MAX_BYTES
from placet import AsyncPlacet
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import PATIENCE_S, open_socket, raw_socket
from tests.gateway.test_stream_live import messages_of, open_stream

pytestmark = [pytest.mark.stack, pytest.mark.broker]

HOLDS = 12
PADDING = "x" * 200_000
HEAD_BYTES = 2_000


@pytest.fixture(scope="module")
def rita(doors: Doors) -> Caller:
    """A reviewer of a tenant in which many large calls are held."""
    tenant = f"large-{uuid4().hex[:8]}"
    doors.publish(tenant)
    bot = doors.caller("bot", "agent", tenant=tenant, agent="billing")
    execution_id = bot.execution()
    for number in range(HOLDS):
        call = bot.propose(execution_id, arguments={"amount": number, "padding": PADDING})
        assert call["status"] == "held"
    return doors.caller("rita", "reviewer", tenant=tenant)


def amounts(items: list[dict[str, Any]]) -> list[int]:
    return [item["arguments"]["amount"] for item in items]


async def parts(connection: Any) -> list[str]:
    """The frames of a snapshot."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while not found or json.loads(found[-1])["more"]:
            frame = await connection.recv()
            if json.loads(frame)["type"] == "snapshot":
                found.append(frame)
    return found


async def test_snapshot_over_one_mebibyte_comes_whole_in_small_frames(rita: Caller) -> None:
    # The client's own bound is the library's default: 1 MiB.
    async with open_socket(rita.url, rita.token) as socket:
        await socket.send(type="subscribe", channels=["holds"])
        frames = await parts(socket.connection)
    assert sum(map(len, frames)) > 2 * 1024 * 1024
    assert max(map(len, frames)) <= PART_MAX_BYTES + HEAD_BYTES
    found = [json.loads(frame) for frame in frames]
    assert amounts([item for part in found for item in part["items"]]) == list(range(HOLDS))
    assert {part["total"] for part in found} == {HOLDS}


async def test_subscribe_with_the_cursor_of_an_early_part_begins_the_snapshot_again(rita: Caller) -> None:
    async with open_socket(rita.url, rita.token) as socket:
        await socket.send(type="subscribe", channels=["holds"])
        first = await socket.next("snapshot")
    assert first["more"]
    async with open_socket(rita.url, rita.token) as socket:
        await socket.send(type="subscribe", channels=["holds"], cursor=first["cursor"])
        again = [json.loads(frame) for frame in await parts(socket.connection)]
        assert amounts([item for part in again for item in part["items"]]) == list(range(HOLDS))
    async with open_socket(rita.url, rita.token) as socket:
        await socket.send(type="subscribe", channels=["holds"], cursor=again[-1]["cursor"])
        await socket.send(type="ping", ref="p")
        assert (await socket.receive())["type"] == "pong"


async def test_client_joins_the_parts_of_a_snapshot(rita: Caller) -> None:
    async with AsyncPlacet(rita.url, token=rita.token) as placet:
        event = await anext(placet.events(("holds",)))
    assert (event.type, event.body["total"]) == ("snapshot", HOLDS)
    assert amounts(event.body["items"]) == list(range(HOLDS))


def test_stream_carries_a_snapshot_in_parts(rita: Caller) -> None:
    items: list[dict[str, Any]] = []
    with open_stream(rita, "holds") as response:
        for message in messages_of(response.iter_lines()):
            items += message["items"]
            if not message["more"]:
                break
    assert amounts(items) == list(range(HOLDS))


async def test_snapshot_beyond_what_may_wait_for_a_reader_says_how_much_is_left_out(
    doors: Doors, rita: Caller
) -> None:
    limits = Limits(queue_bytes=2 * 1024 * 1024)
    async with another_gateway(doors, limits) as url, raw_socket(url) as connection:
        await connection.send(json.dumps({"type": "authenticate", "token": rita.token}))
        await connection.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
        found = [json.loads(frame) for frame in await parts(connection)]
    shown = amounts([item for part in found for item in part["items"]])
    assert shown == list(range(5))
    assert found[-1]["total"] == HOLDS
