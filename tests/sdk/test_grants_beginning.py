"""A tool behind a grant, and a turn on a thread, begin within their lease or not at all."""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import Context, copy_context
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from placet import Placet, Turn, lease, sync
from placet.grants import GatewayConsumer, Grant, GrantVerifier, read_jwks
from placet.grants.asgi import GrantMiddleware
from placet.grants.consuming import Attempt
from tests.sdk.claimed import TURN
from tests.sdk.granting import ARGUMENTS, KEY, NOW_S, grant, key_set
from tests.sdk.scripted import QUICK, Asked, Scripted, serving
from tests.sdk.test_grants_asgi import Gate, Tool, tool_server
from tests.sdk.test_worker_leases import ENDS

LEASE_S = 60.0
SHORT_S = 0.2
PATIENCE_S = 60.0


class Clock:
    """The clock of leases, which a test can put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forward_s = 0.0
        monkeypatch.setattr("placet.clock.now", lambda: time.monotonic() + self.forward_s)


async def test_call_whose_lease_was_over_before_it_reached_the_tool_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, gate, tool = Clock(monkeypatch), Gate(lease_seconds=LEASE_S), Tool()

    async with serving(gate.script), httpx.AsyncClient(timeout=5) as outward:
        consumer = GatewayConsumer(gate.script.url, outward, "t")

        async def consume(granted: Grant) -> Attempt:
            attempt = await consumer(granted)
            clock.forward_s = LEASE_S
            return attempt

        verifier = GrantVerifier("send_money", keys=read_jwks(key_set(KEY)), clock=lambda: NOW_S)
        transport = httpx.ASGITransport(app=GrantMiddleware(tool.app(), verifier, consume))
        async with httpx.AsyncClient(transport=transport, base_url="http://tool") as client:
            answer = await client.post("/run", json=ARGUMENTS, headers={"Placet-Grant": grant()})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_released")
    assert (len(gate.consumed), tool.ran) == (1, [])


class Waiting(Tool):
    """A handler that waits, as for a thread, until it may not begin any more."""

    async def run(self, request: Request) -> Response:
        attempt = request.state.placet
        async with asyncio.timeout(PATIENCE_S):
            while attempt.may_begin():
                self.ran.append("could begin")
                await asyncio.sleep(0.005)
        return JSONResponse({}, 409)


async def test_handler_that_waits_is_told_that_its_attempt_may_not_begin_once_a_renewal_was_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # However late the renewal is refused: that alone ends the loop.
    monkeypatch.setattr(lease, "BEGIN_WITHIN", LEASE_S / SHORT_S)
    # The gate answers the renewal as it answers another consumption.
    gate, tool = Gate(lease_seconds=SHORT_S), Waiting()
    with caplog.at_level(logging.WARNING, "placet.lease"):
        async with tool_server(gate, tool) as client:
            answer = await client.post("/run", json=ARGUMENTS, headers={"Placet-Grant": grant()})
    assert (answer.status_code, bool(tool.ran)) == (409, True)
    assert "already_consumed" in caplog.text


async def test_turn_whose_lease_was_over_before_a_thread_began_its_function_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, ran = Clock(monkeypatch), list[str]()
    until_ended, ended = asyncio.Event(), list[str]()

    async def http(asked: Asked) -> Response:
        last = asked.path.rpartition("/")[2]
        if last == "claim" and not clock.forward_s:
            turn = {**TURN, "attempt_id": asked.json()["attempt_id"], "lease_until": ENDS[0]}
            return JSONResponse({"turn": turn, "lease_seconds": LEASE_S})
        if last in ("yield", "end"):
            ended.append(last)
            until_ended.set()
        if last == "claim":
            await asyncio.Event().wait()
        return JSONResponse({**TURN, "lease_until": ENDS[0]})

    def frozen() -> Context:
        clock.forward_s = LEASE_S
        return copy_context()

    def agent(turn: Turn) -> str:
        ran.append(turn.message)
        return "done"

    monkeypatch.setattr(sync, "copy_context", frozen)
    async with serving(Scripted(on_http=http, refuse_sockets=404)) as script:
        client: Any = await asyncio.to_thread(
            lambda: Placet(script.url, token="t", transport="rest", patience=QUICK)
        )
        working = asyncio.create_task(asyncio.to_thread(client.serve, {"bot": agent}))
        await until_ended.wait()
        await asyncio.to_thread(client.close)
        await asyncio.gather(working, return_exceptions=True)
    assert (ran, ended) == ([], ["yield"])
