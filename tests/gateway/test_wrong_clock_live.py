"""A gateway whose own clock is wrong: leases end by the log's time all the same, and the gateway tells of it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]
# Longer than the lease of a tool that says nothing of it.
OFF_S = 90
LEASE_S = 5


def _set_off(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """The clock of this process, and so of a gateway in it; the stack's own processes have the right one."""
    right_s, right_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: right_s() + seconds)
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + seconds * 1_000_000_000)


async def ask(caller: Caller, call: dict[str, Any], verb: str, **body: str) -> Any:
    path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}/{verb}"
    return await asyncio.to_thread(caller.post, path, {"attempt_id": "P1", **body})


async def test_case_04_gateway_whose_clock_is_ahead_lets_a_fresh_call_run(
    doors: Doors, bot: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = bot.propose(bot.execution(), "read_file")
    _set_off(monkeypatch, OFF_S)
    async with another_gateway(doors) as url:
        here = replace(bot, url=url)
        consumed = await ask(here, call, "consume", digest=call["digest"])
        lives = await ask(here, call, "heartbeat")
        ready = (await asyncio.to_thread(bot.client.get, f"{url}/readyz?part=gateway")).json()
    assert (consumed.status_code, consumed.json().get("status")) == (200, "consumed"), consumed.text
    assert lives.status_code == 200, lives.text
    assert ready["status"] == "ready"
    assert ready["warnings"] == ["this gateway: its clock is 90.0 s ahead of Kafka's"]


async def test_case_04_gateway_whose_clock_is_behind_gives_no_leave_after_the_lease(
    doors: Doors, bot: Caller, anna: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is consumed at once, and this gateway stands still until its lease is over."""
    call = released(doors, bot, anna)
    _set_off(monkeypatch, -OFF_S)
    async with another_gateway(doors) as url:
        with stopped(doors.stack.pid("decider")) as decider:
            asking = asyncio.create_task(ask(replace(bot, url=url), call, "consume", digest=call["digest"]))
            await asyncio.sleep(1)
            os.kill(decider, signal.SIGCONT)
            stand_still(2)
            # Else the decider would have told the end of the lease, and this gateway would have read it.
            os.kill(decider, signal.SIGSTOP)
            stand_still(LEASE_S)
            consumed = await asking
    assert (consumed.status_code, consumed.json()["code"]) == (409, "not_released"), consumed.text


def released(doors: Doors, bot: Caller, anna: Caller) -> dict[str, Any]:
    name = f"brief-{uuid4().hex[:8]}"
    operator = doors.caller("olga", "operator")
    assert operator.call("PUT", f"/v1/tools/{name}", {"lease_seconds": LEASE_S}).status_code == 200
    call = bot.propose(bot.execution(), name)
    body = {"decision": "approve", "digest": call["digest"]}
    assert anna.post(f"/v1/holds/{call['hold_id']}/decision", body).status_code == 200
    return call


@contextmanager
def stopped(pid: int) -> Iterator[int]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGCONT)


def stand_still(seconds: float) -> None:
    """Nothing of this process's loop goes on, and so nothing of the gateway in it."""
    time.sleep(seconds)
