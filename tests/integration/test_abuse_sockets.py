"""Case 15 of the abuse list: giant frames, floods (also by REST) and slow readers hurt nobody but themselves."""

from __future__ import annotations

import asyncio
import json
import socket as sockets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import httpx
import pytest
import websockets

from tests.integration.doors import (
    ANSWER_WITHIN_S,
    Caller,
    Tenant,
    asked,
    fresh,
    new_tenant,
    received,
    refused,
    socket,
)
from tests.integration.site import Site
from tests.integration.tight_gateway import LIMITS
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold}
"""
FRAME_MAX_BYTES = 1024 * 1024
UNAFFECTED_WITHIN_S = 5.0
LARGE_CALLS = 40
LARGE = "x" * 200_000


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY) as found:
        yield found


@pytest.fixture
def flooded(site: Site) -> Iterator[Tenant]:
    """A tenant whose inbox may fill up."""
    with new_tenant(site, POLICY) as found:
        yield found


@pytest.fixture(scope="module")
def tight(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a second gateway of the stack, with narrow limits."""
    directory = tmp_path_factory.mktemp("tight")
    status, log = directory / "status.json", directory / "gateway.log"
    command = [sys.executable, "-m", "tests.integration.tight_gateway"]
    arguments = [str(site.stack.data_dir / "placet.json"), str(status)]
    with log.open("wb") as file:
        process = subprocess.Popen([*command, *arguments], stdout=file, stderr=subprocess.STDOUT)
    try:
        ready = wait_for(
            lambda: json.loads(status.read_text()) if status.exists() else {},
            lambda said: said.get("state") == "ready" or process.poll() is not None,
        )
        assert ready.get("state") == "ready", log.read_text()
        yield str(ready["address"])
    finally:
        process.terminate()
        process.wait(30)


async def test_case_15_giant_frame_is_1009_and_others_go_on(site: Site, tenant: Tenant) -> None:
    async with socket(site, tenant.rita.token) as giant, socket(site, tenant.rita.token) as other:
        await giant.send(json.dumps({"type": "ping", "ref": "x" * FRAME_MAX_BYTES}))
        async with asyncio.timeout(ANSWER_WITHIN_S):
            await giant.wait_closed()
        assert giant.close_code == 1009
        assert (await asked(other, "ping"))["type"] == "pong"


async def test_case_15_giant_first_frame_is_1009_before_anybody_is_known(site: Site) -> None:
    async with socket(site) as giant:
        await giant.send(json.dumps({"type": "authenticate", "token": "x" * FRAME_MAX_BYTES}))
        async with asyncio.timeout(ANSWER_WITHIN_S):
            await giant.wait_closed()
        assert giant.close_code == 1009


def test_case_15_flood_by_rest_is_429_says_when_to_come_back_and_leaves_others_alone(
    tight: str, tenant: Tenant
) -> None:
    propose = {"call_id": "c1", "tool": "send_money", "arguments": {"amount": 5}}
    with httpx.Client(base_url=tight, timeout=ANSWER_WITHIN_S) as client:
        bot, rita = Caller(client, tenant.bot.token), Caller(client, tenant.rita.token)
        over = httpx.Response(200)
        # A request more is let in every 50 ms: on a busy machine the very next one may find it.
        while over.status_code != 429:
            execution_id = tenant.execution()
            path = f"/executions/{execution_id}/tool-calls?wait=0"
            while (answer := bot.get(f"/executions/{execution_id}")).status_code == 200:
                pass
            over = bot.post(path, propose)
        beside = rita.get("/holds?status=open")

        assert refused(answer) == refused(over) == (429, "quota")
        assert over.headers["content-type"] == "application/problem+json"
        assert int(over.headers["retry-after"]) == over.json()["retry_after"] >= 1
        assert beside.status_code == 200
        assert tenant.events(execution_id) == ["ExecutionStarted"]
        time.sleep(over.json()["retry_after"])
        call = bot.post(path, propose).json()
    assert call["status"] == "held"
    assert tenant.decide(call, "reject").status_code == 200


async def test_case_23_flood_of_proposals_meets_the_agents_quota_and_grows_no_inbox(
    site: Site, tight: str, flooded: Tenant
) -> None:
    tenant = flooded
    agent = fresh("crawler")
    crawler = tenant.caller("crawler", "agent", agent=agent)
    execution_id = fresh("run")
    crawler.post("/executions", {"execution_id": execution_id, "agent": agent})
    call = {"tool": "send_money", "arguments": {"amount": 5}}
    async with socket(site, crawler.token, url=tight) as ws:
        answers = []
        for number in range(40):
            body = {**call, "call_id": f"c{number}"}
            answers.append(await asked(ws, "propose", execution_id=execution_id, body=body))
        again = await asked(ws, "propose", execution_id=execution_id, body={**call, "call_id": "c0"})
    over = [answer["body"] for answer in answers if answer["status"] == 429]
    taken = [answer["body"] for answer in answers if answer["status"] == 202]

    assert len(over) + len(taken) == 40
    assert len(taken) <= 10 + 20, "a burst, and one a second"
    assert {problem["code"] for problem in over} == {"quota"}
    assert all(agent in problem["detail"] and problem["retry_after"] >= 1 for problem in over)
    assert again["status"] == 202, "a repeat of what is known is not counted"
    with httpx.Client(base_url=tight, timeout=ANSWER_WITHIN_S) as client:
        path = f"/executions/{execution_id}/tool-calls?wait=0"
        by_rest = Caller(client, crawler.token)
        bodies = ({**call, "call_id": f"by-rest-{number}"} for number in range(10))
        # One more is taken each second.
        by_one = [by_rest.post(path, body) for body in bodies]
        refusals = [refused(one) for one in by_one if one.status_code != 202]
        assert set(refusals) == {(429, "quota")}
        more = len(by_one) - len(refusals)
        other = tenant.execution()
        beside = Caller(client, tenant.bot.token).post(f"/executions/{other}/tool-calls?wait=0", call)
        assert beside.status_code == 202, "another agent has a quota of its own"
    groups = tenant.rita.get(f"/holds/groups?agent={agent}").json()["items"]
    assert [(group["tool"], group["count"]) for group in groups] == [("send_money", len(taken) + more)]
    assert tenant.events(execution_id).count("ToolCallProposed") == len(taken) + more


def test_case_23_a_group_of_high_risk_is_never_decided_in_bulk(flooded: Tenant) -> None:
    tenant = flooded
    calls = [tenant.propose(tenant.execution(), "send_money", {"amount": 5}) for _ in range(3)]
    items = [{"hold_id": call["hold_id"], "digest": call["digest"], "decision": "approve"} for call in calls]
    answers = tenant.rita.post("/holds/decisions", {"items": items}).json()["items"]
    assert [(one["status"], one["code"]) for one in answers] == [(422, "invalid")] * 3
    assert all(tenant.call(call["execution_id"])["status"] == "held" for call in calls)


async def test_case_15_too_many_sockets_of_one_subject_leave_another_its_own(
    site: Site, tight: str, tenant: Tenant
) -> None:
    greeted = {"Authorization": f"Bearer {tenant.rita.token}"}
    async with AsyncExitStack() as opened:
        for _ in range(LIMITS.sockets):
            await opened.enter_async_context(socket(site, tenant.rita.token, url=tight))
        async with socket(site, url=tight, additional_headers=greeted) as one_more:
            refusal = await received(one_more)
            assert (refusal["code"], refusal["status"], refusal["retry_after"]) == ("quota", 429, 5)
            await asyncio.wait_for(one_more.wait_closed(), ANSWER_WITHIN_S)
            assert one_more.close_code == 1013
        async with socket(site, tenant.bot.token, url=tight) as another:
            assert (await asked(another, "ping"))["type"] == "pong"
    # The server notices each end a moment after the client.
    async with asyncio.timeout(ANSWER_WITHIN_S):
        said = ""
        while said != "authenticated":
            async with socket(site, url=tight, additional_headers=greeted) as freed:
                said = (await received(freed))["type"]


async def test_case_15_message_without_a_place_for_the_stream_of_its_answer_opens_no_conversation(
    site: Site, tight: str, tenant: Tenant
) -> None:
    conversation_id, headers = fresh("run"), {"Authorization": f"Bearer {tenant.bot.token}"}
    body = {"message": "hello", "conversation_id": conversation_id}
    async with AsyncExitStack() as opened:
        for _ in range(LIMITS.sockets):
            await opened.enter_async_context(socket(site, tenant.bot.token, url=tight))
        client = await opened.enter_async_context(httpx.AsyncClient(base_url=tight, headers=headers))
        answer = await client.post("/agent/chat", json=body)
        assert (answer.status_code, answer.json()["code"]) == (429, "quota")
        assert (await client.get(f"/v1/executions/{conversation_id}")).status_code == 404


async def test_case_15_flood_meets_the_rate_limit_then_is_cut_off_and_others_go_on(
    site: Site, tight: str, tenant: Tenant
) -> None:
    async with (
        socket(site, tenant.rita.token, url=tight) as flood,
        socket(site, tenant.rita.token, url=tight) as other,
    ):
        answers: list[Any] = []
        sending = asyncio.create_task(_flood(flood))
        try:
            async with asyncio.timeout(60):
                while True:
                    answers.append(json.loads(await flood.recv()))
                    if len(answers) == 100:
                        async with asyncio.timeout(UNAFFECTED_WITHIN_S):
                            assert (await asked(other, "ping"))["type"] == "pong"
        except websockets.ConnectionClosed:
            sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

        refusals = [answer for answer in answers if answer["type"] == "error"]
        assert {(answer["status"], answer["code"]) for answer in refusals} == {(429, "quota")}
        assert refusals[0]["retry_after"] > 0
        assert any(answer["type"] == "pong" for answer in answers)
        assert (flood.close_code, flood.close_reason) == (1008, "too many messages")


async def _flood(ws: websockets.ClientConnection) -> None:
    for number in range(5_000):
        await ws.send(f'{{"type":"ping","ref":"{number}"}}')


async def test_case_15_slow_reader_has_a_bounded_queue_and_others_get_everything(
    site: Site, tight: str, flooded: Tenant
) -> None:
    tenant = flooded
    narrow = sockets.socket()
    narrow.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 256 * 1024)
    narrow.connect(("127.0.0.1", int(tight.rpartition(":")[2])))
    slow_options = {"sock": narrow, "max_queue": 1, "ping_interval": None, "max_size": None}
    async with (
        socket(site, tenant.rita.token, url=tight, **slow_options) as slow,
        socket(site, tenant.rita.token) as quick,
    ):
        for reader in (slow, quick):
            await reader.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
        reading = asyncio.create_task(_reviews(quick, LARGE_CALLS))

        await asyncio.to_thread(_propose_large_calls, tenant)

        assert len(await reading) == LARGE_CALLS
        seen = [await received(slow)]
        while seen[-1]["type"] != "resync_required":
            seen.append(await received(slow))
        missed = LARGE_CALLS - sum(message["type"] == "tool_call_pending_review" for message in seen)
        assert missed > 0
        assert len(seen) < LIMITS.queue_messages + LARGE_CALLS

        # The narrow gateway reads the log at its own pace.
        await asyncio.to_thread(_until_all_are_listed, tight, tenant)
        await slow.send(json.dumps({"type": "subscribe", "channels": ["holds"]}))
        while (snapshot := await received(slow))["type"] != "snapshot":
            pass
        assert snapshot["total"] == LARGE_CALLS, "what was missed is seen by subscribing anew"


def _until_all_are_listed(url: str, tenant: Tenant) -> None:
    with httpx.Client(base_url=url, timeout=ANSWER_WITHIN_S) as client:
        rita = Caller(client, tenant.rita.token)
        wait_for(
            lambda: rita.get("/holds?status=open&limit=500").json().get("items", []),
            lambda found: len(found) == LARGE_CALLS,
        )


def _propose_large_calls(tenant: Tenant) -> None:
    execution_id = tenant.execution()
    for number in range(LARGE_CALLS):
        body = {"call_id": f"c{number}", "tool": "send_money", "arguments": {"text": LARGE}}
        ask = partial(tenant.bot.post, f"/executions/{execution_id}/tool-calls?wait=0", body)
        # 429: large calls of the tenant have used up their share of the decider for now.
        answer = wait_for(ask, lambda said: said.status_code != 429)
        assert answer.json()["status"] == "held", answer.text[:300]


async def _reviews(ws: websockets.ClientConnection, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        message = await received(ws)
        if message["type"] == "tool_call_pending_review":
            found.append(message)
    return found
