"""The same words under the same key are the same command, at whichever gateway and by whichever door."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@contextmanager
def undecided(doors: Doors) -> Iterator[None]:
    """Whatever is asked meanwhile is decided at its end."""
    pid = doors.stack.pid("decider")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def held(bot: Caller) -> dict[str, Any]:
    return bot.propose(bot.execution())


def looked(person: Caller, call: dict[str, Any]) -> dict[str, Any]:
    """A hold whose view a person has on show from now on, at this gateway alone."""
    shown = person.get(f"/v1/holds/{call['hold_id']}/view")
    assert shown.status_code == 200, shown.text
    hold: dict[str, Any] = person.get(f"/v1/holds/{call['hold_id']}").json()
    return hold


async def decide(person: Caller, call: dict[str, Any], key: str, **body: Any) -> httpx.Response:
    path = f"/v1/holds/{call['hold_id']}/decision"
    return await asyncio.to_thread(person.post, path, {"decision": "approve", **body}, key=key)


async def test_decision_repeated_at_a_gateway_that_never_showed_the_hold_is_the_same(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call, key = held(bot), uuid4().hex
    digest = looked(anna, call)["digest"]
    async with another_gateway(doors) as url:
        with undecided(doors):
            first = asyncio.create_task(decide(anna, call, key, digest=digest))
            await asyncio.sleep(0.5)
            second = asyncio.create_task(decide(replace(anna, url=url), call, key, digest=digest))
            await asyncio.sleep(0.5)
        answers = [await first, await second]
        other = await decide(replace(anna, url=url), call, key, digest=digest, feedback="another body")
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    assert len({answer.json()["decision_id"] for answer in answers}) == 1
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    (vote,) = anna.get(f"/v1/holds/{call['hold_id']}").json()["votes"]
    assert vote["dwell_ms"] > 0


async def test_refused_decision_is_refused_alike_at_another_gateway(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call, key = held(bot), uuid4().hex
    looked(anna, call)
    async with another_gateway(doors) as url:
        first = await decide(anna, call, key, digest="0" * 64)
        again = await decide(replace(anna, url=url), call, key, digest="0" * 64)
    assert (first.status_code, first.json()["code"]) == (409, "digest_mismatch")
    assert (again.status_code, again.json()["code"]) == (409, "digest_mismatch")


async def test_consumption_that_names_no_attempt_is_another_each_time_whatever_its_key(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    """Two processes may have made the same key of the call: the second must not be told to run it too."""
    call, key = held(bot), uuid4().hex
    assert (await decide(anna, call, uuid4().hex, digest=call["digest"])).status_code == 200
    path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}/consume"
    body = {"digest": call["digest"]}
    where = {"execution_id": call["execution_id"], "call_id": call["call_id"]}
    async with another_gateway(doors) as url, open_socket(bot.url, bot.token) as socket:
        first = await asyncio.to_thread(bot.post, path, body, key=key)
        again = [
            await asyncio.to_thread(one.post, path, body, key=key) for one in (bot, replace(bot, url=url))
        ]
        reply = await socket.ask("consume", ref=key, **where, body=body)
        named = {**body, "attempt_id": first.json()["attempt_id"]}
        by_name = await asyncio.to_thread(bot.post, path, named, key=key)
    assert (first.status_code, by_name.status_code) == (200, 200), (first.text, by_name.text)
    refused = [(one.status_code, one.json()["code"]) for one in again] + [
        (reply["status"], reply["body"]["code"])
    ]
    assert refused == [(409, "already_consumed")] * 3
