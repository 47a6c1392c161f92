"""A gateway whose neighbours are away or that was started anew: never a guess, and never a second effect."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import httpx
import pytest

from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors
from tests.gateway.sockets import open_socket
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@contextmanager
def stopped(doors: Doors, role: str) -> Iterator[None]:
    """A role's process stands still."""
    pid = doors.stack.pid(role)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_propose_decider_away_is_proposed_and_judged_later(doors: Doors, bot: Caller) -> None:
    execution_id = bot.execution()
    body = {"call_id": "c1", "tool": "read_file", "arguments": {"a": 1}}
    path = f"/v1/executions/{execution_id}/tool-calls"
    with stopped(doors, "decider"):
        answer = bot.post(f"{path}?wait=0", body)
        assert answer.status_code == 202
        shown = answer.json()
        assert (shown["status"], shown["verdict"], shown["digest"]) == ("proposed", None, "")
    judged = wait_for(lambda: bot.get(f"{path}/c1?wait=1"), lambda answer: answer.status_code == 200)
    assert judged.json()["status"] == "released"
    assert bot.post(path, body).json()["digest"] == judged.json()["digest"]


def test_propose_broker_away_is_never_told_as_proposed(doors: Doors, bot: Caller) -> None:
    """What Kafka has not taken may be lost: 503, and the repeat is decided once."""
    execution_id = bot.execution()
    body = {"call_id": "c1", "tool": "read_file", "arguments": {"a": 1}}
    path = f"/v1/executions/{execution_id}/tool-calls"
    with stopped(doors, "kafka"):
        answer = bot.post(path, body)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "1"
    judged = wait_for(lambda: bot.post(path, body), lambda answer: answer.status_code == 200)
    assert judged.json()["status"] == "released"


def determined(caller: Caller, path: str) -> httpx.Response:
    """The answer once the gateway can give one: on a busy machine it says first that it cannot determine it now."""
    return wait_for(lambda: caller.get(path), lambda answer: answer.status_code != 503)


async def test_call_that_nobody_has_decided_yet_is_proposed_at_every_gateway(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    """Also at one that was started since; and never one that nobody proposed, or that was refused."""
    execution_id = await asyncio.to_thread(bot.execution)
    path = f"/v1/executions/{execution_id}/tool-calls"
    refused = {"call_id": "wrong", "tool": "send_money", "arguments": {"amount": "much"}}
    assert (await asyncio.to_thread(bot.post, path, refused)).status_code == 422
    with stopped(doors, "decider"):
        body = {"call_id": "c1", "tool": "read_file", "arguments": {"a": 1}}
        assert (await asyncio.to_thread(bot.post, f"{path}?wait=0", body)).status_code == 202
        shown = [await asyncio.to_thread(determined, bot, f"{path}/c1{wait}") for wait in ("", "?wait=0.2")]
        unknown = [await asyncio.to_thread(determined, bot, f"{path}/{name}") for name in ("c2", "wrong")]
        stranger = doors.caller("other", "agent", agent="other")
        forbidden = await asyncio.to_thread(stranger.get, f"{path}/c1")
        async with another_gateway(doors) as url:
            there = replace(bot, url=url)
            shown.append(await asyncio.to_thread(determined, there, f"{path}/c1"))
            unknown.append(await asyncio.to_thread(determined, there, f"{path}/wrong"))
    judged = await asyncio.to_thread(bot.get, f"{path}/c1?wait=20")

    for seen in shown:
        assert (seen.status_code, seen.json()["status"]) == (202, "proposed"), seen.text
        assert (seen.json()["agent"], seen.json()["arguments"]) == ("billing", {"a": 1})
    assert [answer.status_code for answer in unknown] == [404, 404, 404]
    assert forbidden.status_code == 403
    assert (judged.status_code, judged.json()["status"]) == (200, "released")


def test_decide_decider_away_is_unavailable_and_the_repeat_gets_the_answer(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    call = bot.propose(bot.execution())
    path, key = f"/v1/holds/{call['hold_id']}/decision", uuid4().hex
    word = {"decision": "approve", "digest": call["digest"]}
    with stopped(doors, "decider"):
        away = anna.post(path, word, key=key)
        assert (away.status_code, away.json()["code"]) == (503, "unavailable")
        assert "retry-after" in away.headers
    again = anna.post(path, word, key=key)
    assert (again.status_code, again.json()["status"]) == (200, "resolved")


def test_read_projector_away_shows_what_the_tail_has_seen(doors: Doors, bot: Caller, anna: Caller) -> None:
    with stopped(doors, "projector"):
        call = bot.propose(bot.execution())
        assert anna.get(f"/v1/holds/{call['hold_id']}").json()["status"] == "open"
        open_ids = {hold["hold_id"] for hold in anna.get("/v1/holds?status=open&limit=500").json()["items"]}
        assert call["hold_id"] in open_ids
        word = {"decision": "approve", "digest": call["digest"]}
        assert anna.post(f"/v1/holds/{call['hold_id']}/decision", word).status_code == 200
        path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
        assert bot.get(path).json()["status"] == "released"


def test_list_of_the_views_is_never_older_than_the_cursor_it_is_asked_after(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    with stopped(doors, "projector"):
        call = bot.propose(bot.execution())
        after = f"after={call['cursor']}"
        paths = (f"/v1/executions?limit=500&{after}", f"/v1/holds?{after}", f"/v1/standing-rules?{after}")
        with ThreadPoolExecutor(len(paths)) as pool:
            behind = list(pool.map(anna.get, paths))
        assert [(one.status_code, one.json().get("code")) for one in behind] == [(503, "unavailable")] * 3
    found = wait_for(lambda: anna.get(paths[0]), lambda answer: answer.status_code == 200).json()["items"]
    assert call["execution_id"] in {row["execution_id"] for row in found}


def test_list_of_an_execution_is_never_older_than_what_the_gateway_has_read(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    with stopped(doors, "projector"):
        call = bot.propose(bot.execution())
        run = f"/v1/executions/{call['execution_id']}"
        paths = (f"{run}/tool-calls", f"{run}/events", f"{run}?at=1")
        with ThreadPoolExecutor(len(paths)) as pool:
            behind = list(pool.map(anna.get, paths))
        assert [(one.status_code, one.json().get("code")) for one in behind] == [(503, "unavailable")] * 3
    found = wait_for(lambda: anna.get(paths[0]), lambda answer: answer.status_code == 200).json()["items"]
    assert [row["call_id"] for row in found] == [call["call_id"]]


async def test_gateway_started_anew_knows_what_was_open_and_answered(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    key = uuid4().hex
    execution_id = await asyncio.to_thread(bot.execution)
    path = f"/v1/executions/{execution_id}/tool-calls?wait=0"
    body = {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}}
    first = (await asyncio.to_thread(bot.post, path, body, key=key)).json()
    async with another_gateway(doors) as url:
        there, person = replace(bot, url=url), replace(anna, url=url)
        open_holds = (await asyncio.to_thread(person.get, "/v1/holds?status=open&limit=500")).json()["items"]
        assert first["hold_id"] in {hold["hold_id"] for hold in open_holds}
        again = await asyncio.to_thread(there.post, path, body, key=key)
        assert again.json()["hold_id"] == first["hold_id"]
        other = await asyncio.to_thread(there.post, path, {**body, "arguments": {"amount": 6}}, key=key)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
        async with open_socket(url, bot.token) as agent:
            reply = await agent.propose(execution_id, "c1", "send_money")
            assert reply["body"]["hold_id"] == first["hold_id"]
            word = {"decision": "approve", "digest": first["digest"]}
            decided = await asyncio.to_thread(anna.post, f"/v1/holds/{first['hold_id']}/decision", word)
            assert decided.status_code == 200
            pushed = await agent.next("tool_call_decided", call_id="c1")
            assert pushed["status"] == "released"
            old = await asyncio.to_thread(there.get, f"/v1/executions/{execution_id}/tool-calls/c1")
            assert old.json()["approved_arguments"] == {"amount": 5}


async def test_cursor_of_before_a_restart_resumes_or_asks_to_look_anew(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    async with open_socket(anna.url, anna.token) as person:
        await person.subscribe("holds")
        await person.send(type="ping")
        cursor = (await person.next("pong"))["cursor"]
    call = await asyncio.to_thread(lambda: bot.propose(bot.execution()))
    async with another_gateway(doors) as url, open_socket(url, anna.token) as person:
        await person.send(type="subscribe", channels=["holds"], cursor=cursor)
        message = await person.receive()
        if message["type"] == "resync_required":
            items = await person.subscribe("holds")
            assert call["hold_id"] in {item["hold_id"] for item in items}
        else:
            # Holds of other tests may end meanwhile, and are told, too.
            while message["hold_id"] != call["hold_id"]:
                message = await person.receive()
