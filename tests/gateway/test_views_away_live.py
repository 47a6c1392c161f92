"""Readers that come back with a cursor while the views cannot be read: they wait, or come again, and miss nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from gateway.problems import Problem
from gateway.pushes import catching_up
from gateway.sockets.close import TRY_LATER
from gateway.views import GatewayViews
from projections.queries.history import ExecutionState, WantedRows
from schemas.refusals import Refusal
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import PATIENCE_S, open_socket
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

StateBefore = Callable[[GatewayViews, bytes, int, int, WantedRows], Awaitable[ExecutionState | None]]


@dataclass
class Away:
    """The views of the gateways of this process, whose database is away until it `is_back`."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    is_back: bool = False
    _read: StateBefore = GatewayViews.state_before

    async def state_before(
        self, views: GatewayViews, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        self.asked.set()
        if self.is_back:
            return await self._read(views, key, partition, offset, wanted)
        raise Problem(Refusal.UNAVAILABLE, "the database is away", retry_after=1)


@pytest.fixture(name="away")
def _away(monkeypatch: pytest.MonkeyPatch) -> Away:
    away = Away()

    async def state_before(views: GatewayViews, *asked: Any) -> ExecutionState | None:
        return await away.state_before(views, *asked)

    monkeypatch.setattr(GatewayViews, "state_before", state_before)
    monkeypatch.setattr(catching_up, "RETRY_S", 0.05)
    return away


def missed(bot: Caller) -> tuple[str, str, list[str]]:
    """An execution, a cursor, and the calls that were proposed since; the views have all of them."""
    execution_id, calls = bot.execution(), [uuid4().hex[:8] for _ in range(3)]
    cursor = bot.propose(execution_id, "c0")["cursor"]
    path = f"/v1/executions/{execution_id}/tool-calls"
    for call_id in calls:
        last = bot.post(path, {"call_id": call_id, "tool": "send_money", "arguments": {"amount": 5}})
    after = f"/v1/executions/{execution_id}/tool-calls?after={last.json()['cursor']}"
    wait_for(lambda: bot.get(after), lambda answer: answer.status_code == 200)
    return execution_id, cursor, calls


async def test_socket_that_comes_back_while_the_views_are_away_gets_what_it_missed_once_they_are_back(
    doors: Doors, bot: Caller, away: Away
) -> None:
    execution_id, cursor, calls = await asyncio.to_thread(missed, bot)
    async with another_gateway(doors) as url, open_socket(url, bot.token) as agent:
        await agent.subscribe(f"executions:{execution_id}", cursor=cursor)
        async with asyncio.timeout(PATIENCE_S):
            await away.asked.wait()
        away.is_back = True
        seen = [(await agent.next("tool_call_pending_review", call_id=call))["call_id"] for call in calls]
        assert "resync_required" not in {message["type"] for message in agent.kept}
    assert seen == calls


async def test_socket_for_which_the_views_are_away_too_long_is_closed_and_comes_back_with_its_cursor(
    doors: Doors, bot: Caller, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "WHOLE_S", 1.0)
    execution_id, cursor, calls = await asyncio.to_thread(missed, bot)
    channel = f"executions:{execution_id}"
    async with another_gateway(doors) as url:
        async with open_socket(url, bot.token) as agent:
            await agent.subscribe(channel, cursor=cursor)
            error = await agent.next("error")
            with pytest.raises(ConnectionClosed) as closed:
                await agent.receive()
        assert agent.kept == []
        assert (error["code"], closed.value.rcvd and closed.value.rcvd.code) == ("unavailable", TRY_LATER)
        away.is_back = True
        async with open_socket(url, bot.token) as agent:
            await agent.subscribe(channel, cursor=error["cursor"])
            for call in calls:
                await agent.next("tool_call_pending_review", call_id=call)


async def test_stream_for_which_the_views_are_away_too_long_ends_without_an_id(
    doors: Doors, bot: Caller, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "WHOLE_S", 1.0)
    execution_id, cursor, _ = await asyncio.to_thread(missed, bot)
    async with another_gateway(doors) as url, httpx.AsyncClient(timeout=PATIENCE_S) as client:
        there = replace(bot, url=url)
        headers = {"Authorization": f"Bearer {there.token}", "Last-Event-ID": cursor}
        path = f"{url}/v1/events/stream?channels=executions:{execution_id}"
        answer = await client.get(path, headers=headers)
    lines = answer.text.splitlines()
    assert "event: error" in lines
    assert not [line for line in lines if line.startswith("id:") or "resync" in line]
    assert '"code":"unavailable"' in answer.text
