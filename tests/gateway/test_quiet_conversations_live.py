"""A second gateway that keeps few executions: what follows in a conversation that was quiet for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from gateway.kafka.tail import KafkaTail
from gateway.live.live import Live
from gateway.service import gateway as service
from gateway.service.assembled import Assembled
from gateway.service.live_state import live_of
from gateway.views import Beginning
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

OTHERS = 3


@asynccontextmanager
async def forgetful(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, Live]]:
    """A gateway that keeps one execution besides those with open work."""
    lives: list[Live] = []

    def forgetful_live_of(parts: Assembled, beginning: Beginning) -> tuple[Live, KafkaTail]:
        live, tail = live_of(parts, beginning)
        live.cache.executions.max_passing = 1
        lives.append(live)
        return live, tail

    monkeypatch.setattr(service, "live_of", forgetful_live_of)
    async with another_gateway(doors) as url:
        yield url, lives[0]


def conversation(worker: Caller) -> str:
    """One whose turn has ended, and others after it."""
    execution_id = worker.execution()
    for _ in range(OTHERS):
        worker.execution()
    return execution_id


async def at(url: str, worker: Caller, path: str, body: dict[str, Any]) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        headers = {"Authorization": f"Bearer {worker.token}"}
        return await client.post(f"{url}{path}", json=body, headers=headers)


async def test_worker_of_a_second_gateway_gets_the_turn_of_a_quiet_conversation(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"quiet-{uuid4().hex[:10]}"
    worker = doors.caller("w", "agent", agent=name)
    async with forgetful(doors, monkeypatch) as (url, live):
        execution_id = await asyncio.to_thread(conversation, worker)
        claim = f"/v1/agents/{name}/turns/claim?wait=20"
        claiming = asyncio.create_task(at(url, worker, claim, {"attempt_id": "a1"}))
        sent = {"message_id": "m1", "text": "are you there?"}
        path = f"/v1/executions/{execution_id}"
        asked = await asyncio.to_thread(worker.post, f"{path}/messages", sent)
        assert asked.status_code == 201, asked.text
        turn = (await claiming).json()["turn"]
        assert (turn["turn_id"], turn["agent"], turn["conversation_id"]) == ("m1", name, execution_id)
        ended = await at(url, worker, f"{path}/turns/m1/end", {"attempt_id": "a1", "reply": "yes"})
        assert ended.status_code == 200, ended.text
        assert not live.cache.incomplete


async def test_hold_of_an_execution_that_is_not_kept_is_shown_as_at_the_gateway_that_opened_it(
    doors: Doors, anna: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = doors.caller("w", "agent", agent=f"quiet-{uuid4().hex[:10]}")
    async with forgetful(doors, monkeypatch) as (url, live):
        execution_id = await asyncio.to_thread(conversation, worker)
        call = await asyncio.to_thread(worker.propose, execution_id)
        hold_id, cursor = call["hold_id"], call["cursor"]
        here, there = await asyncio.to_thread(
            both, Caller(url, anna.token, anna.client), anna, hold_id, cursor
        )
        assert here == there
        assert there["agent"] == call["agent"]
        assert not live.cache.incomplete


def both(here: Caller, there: Caller, hold_id: str, cursor: str) -> Sequence[dict[str, Any]]:
    """A hold as two gateways show it, at the same moment."""
    found = [caller.get(f"/v1/holds/{hold_id}?after={cursor}").json() for caller in (here, there)]
    return [{name: value for name, value in one.items() if name != "cursor"} for one in found]
