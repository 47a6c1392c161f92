"""External tools that `placet tools start` launches at a real stack: they ask people over the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Origin

from schemas.human_input.v1 import human_input_pb2 as pb
from schemas.human_input.v1 import human_input_pb2_grpc as rpc
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_human_bridge_live import Bridge, bridge_of
from tests.servers.external_tool import StartedTool, started_tool, write_tool

pytestmark = [pytest.mark.stack, pytest.mark.broker]

WITHIN_S = 60.0


@pytest.fixture
def bridge_address(doors: Doors) -> str:
    """The gateway's second port."""
    found: str = doors.stack.status()["bridge_address"]
    return found


@pytest.fixture
def asking_tool(bridge_address: str, bot: Caller, tmp_path: Path) -> Iterator[StartedTool]:
    with started_tool(write_tool(tmp_path, bridge_address), PLACET_TOKEN=bot.token) as tool:
        tool.next("ready")
        yield tool


async def test_question_of_an_external_tool_is_answered_over_the_bridge(
    asking_tool: StartedTool, anna: Caller
) -> None:
    async with (
        bridge_of(anna) as person,
        grpc.aio.insecure_channel(f"127.0.0.1:{asking_tool.port}") as channel,
    ):
        ask: Any = channel.unary_unary("/test.Asking/Ask")
        asked = asyncio.ensure_future(ask("Продолжить?".encode(), timeout=WITHIN_S))
        published = await person.next("publish", prompt="Продолжить?")
        await person.send(type="answer", task_id=published["task_id"], response="Да, продолжить.")
        assert (await asked).decode() == "Да, продолжить."


async def test_second_port_is_the_same_gateway(bridge_address: str, bot: Caller, anna: Caller) -> None:
    headers = {"Authorization": f"Bearer {anna.token}"}
    assert bot.client.get(f"http://{bridge_address}/v1/tools", headers=headers).status_code == 200
    own_page = Origin(f"http://{bridge_address}")
    url = f"ws://{bridge_address}/human-bridge"
    async with connect(url, additional_headers=headers, origin=own_page) as connection:
        person = Bridge(connection)
        await person.next("authenticated")
        run = bot.post("/v1/tools:run", {"name": "human_input", "arguments": {"prompt": "On both?"}}).json()
        task_id = run["result"]["structValue"]["fields"]["task_id"]["stringValue"]
        await person.next("publish", task_id=task_id)
        await person.send(type="answer", task_id=task_id, response="yes")
        await person.next("answered", task_id=task_id)
    assert bot.get(f"/v1/human-input/{task_id}?wait=5").json() == {"response": "yes"}


@pytest.mark.parametrize("by", ["the broker's address", "PLACET_URL"])
async def test_file_without_a_command_serves_placets_own_grpc(
    by: str, doors: Doors, bridge_address: str, bot: Caller, tmp_path: Path
) -> None:
    broker, variables = (bridge_address, {}) if by != "PLACET_URL" else ("nobody.invalid:1", {by: doors.url})
    with started_tool(write_tool(tmp_path, broker, None), **variables) as tool:
        tool.next("ready")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{tool.port}") as channel:
            stub: Any = rpc.HumanInputToolStub(channel)
            metadata = (("authorization", f"Bearer {bot.token}"),)
            run = await stub.Run(pb.RunRequest(prompt="Go on?"), metadata=metadata, timeout=WITHIN_S)
        assert run.status == "waiting_for_human"
        assert bot.get(f"/v1/requests/{run.task_id}").json()["question"] == "Go on?"
        tool.running.terminate()
        assert tool.next("stopped")["exit_code"] == 0
        assert tool.ended() == 0
