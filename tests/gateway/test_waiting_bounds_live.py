"""Requests that wait: as many of one subject at once as the operator's page says, by every route."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.operations.calls import VERDICT_WAIT_S
from gateway.rest.parameters import WAITS_AT_MOST_S
from gateway.settings import DEFAULT_REQUESTS_PER_S
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# Slower than the rate of requests, which has a limit of its own.
PAUSE_S = 0.004
# nginx by default (`proxy_read_timeout`), and the load balancers of the clouds.
PROXY_S = 60


def waits_of(bot: Caller) -> list[tuple[str, str, dict[str, Any]]]:
    """A waiting request of each kind, which nothing ends: method, address and body."""
    execution = bot.execution()
    request = bot.post("/v1/requests", {"question": "?", "execution_id": execution}).json()["request_id"]
    calls = f"/v1/executions/{execution}/tool-calls"
    bot.post(calls, {"call_id": "held", "tool": "send_money", "arguments": {}})
    of = f"?execution_id={execution}&wait=60"
    return [
        ("GET", f"/v1/human-input/{request}{of}", {}),
        ("GET", f"/v1/requests/{request}{of}", {}),
        ("GET", f"{calls}/held?wait=60", {}),
        ("POST", "/v1/agents/billing/turns/claim?wait=60", {"attempt_id": "nobody"}),
    ]


async def test_case_30_waiting_requests_of_one_subject_are_bounded_and_another_waits(
    doors: Doors, bot: Caller
) -> None:
    waits = await asyncio.to_thread(waits_of, bot)
    mine = {"Authorization": f"Bearer {bot.token}"}
    rival = {"Authorization": f"Bearer {doors.caller('rival', 'agent', agent='billing').token}"}
    no_limits = httpx.Limits(max_connections=None)

    async def send(client: httpx.AsyncClient, number: int, headers: dict[str, str] = mine) -> httpx.Response:
        method, path, body = waits[number % len(waits)]
        return await client.request(method, path, headers=headers, json=body if method == "POST" else None)

    async with httpx.AsyncClient(base_url=doors.url, timeout=90) as after:
        async with httpx.AsyncClient(base_url=doors.url, timeout=90, limits=no_limits) as client:
            waiting = []
            for number in range(DEFAULT_REQUESTS_PER_S):
                waiting.append(asyncio.create_task(send(client, number)))
                await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(1.0)
            assert [task.result().text for task in waiting if task.done()] == []
            for number in range(len(waits)):
                refused = await send(after, number)
                assert (refused.status_code, refused.json()["code"]) == (429, "quota"), refused.text
                assert refused.headers["retry-after"] == "5"
                assert "wait" in refused.json()["detail"]
            await _served_without_waiting(after, waits, mine)
            path = waits[0][1].replace("wait=60", "wait=0.2")
            assert (await after.get(path, headers=rival)).status_code == 202
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        # Who is gone waits no longer.
        async with asyncio.timeout(10):
            path = waits[0][1].replace("wait=60", "wait=0.1")
            while (await after.get(path, headers=mine)).status_code != 202:
                await asyncio.sleep(0.1)


async def _served_without_waiting(client: httpx.AsyncClient, waits: Any, headers: dict[str, str]) -> None:
    """A state is told, and a call that is held is proposed: it is answered as held at once, not after 5 s."""
    path = waits[0][1].replace("&wait=60", "")
    assert (await client.get(path, headers=headers)).status_code == 202
    began = time.monotonic()
    body = {"call_id": "one-more", "tool": "send_money", "arguments": {}}
    calls = waits[2][1].removesuffix("/held?wait=60")
    proposed = await client.post(calls, headers=headers, json=body)
    assert (proposed.status_code, proposed.json()["status"]) == (202, "held")
    assert time.monotonic() - began < 4


async def test_request_that_waits_is_answered_before_a_proxy_gives_up(
    doors: Doors, bot: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proposal waits for its verdict before it waits for a person.
    assert WAITS_AT_MOST_S + VERDICT_WAIT_S + 5 <= PROXY_S
    monkeypatch.setattr("gateway.rest.parameters.WAITS_AT_MOST_S", 0.2)
    async with another_gateway(doors) as url:
        here = Caller(url, bot.token, bot.client)
        waits = await asyncio.to_thread(waits_of, here)
        calls = waits[2][1].removesuffix("/held?wait=60")
        waits.append(("POST", f"{calls}?wait=60", {"call_id": "more", "tool": "send_money", "arguments": {}}))
        for method, path, body in waits:
            answer = await asyncio.to_thread(here.call, method, path, body or None)
            assert answer.status_code in (200, 202), answer.text


async def test_client_that_leaves_while_it_waits_made_no_bad_request(doors: Doors, bot: Caller) -> None:
    async with another_gateway(doors) as url:
        here = Caller(url, bot.token, bot.client)
        waits = await asyncio.to_thread(waits_of, here)
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {bot.token}"}
        ) as client:
            for method, path, body in waits:
                with pytest.raises(httpx.ReadTimeout):
                    await client.request(method, path, json=body or None, timeout=0.5)
            async with asyncio.timeout(10):
                while await _answered(client, "499") < len(waits):
                    await asyncio.sleep(0.05)
            assert await _answered(client, "400") == 0


async def _answered(client: httpx.AsyncClient, status: str) -> int:
    families = text_string_to_metric_families((await client.get("/metrics")).text)
    samples = [
        one for family in families if family.name == "placet_gateway_requests" for one in family.samples
    ]
    return int(sum(one.value for one in samples if one.labels.get("status") == status))
