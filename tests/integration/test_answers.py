"""One key with two bodies, and cursors, at two gateways and over the death of one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import websockets

from tests.integration.doors import Caller, Tenant, asked, fresh, received, socket
from tests.integration.second_gateway import second_gateway
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

PAIRS = 6
REUSED = (409, "idempotency_key_reused")


@pytest.fixture(scope="module")
def other_url(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with second_gateway(site, tmp_path_factory.mktemp("second")) as url:
        yield url


@pytest.fixture(scope="module")
def other(other_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=other_url, timeout=30) as client:
        yield client


def kill_gateway(site: Site) -> None:
    """kill -9 of the stack's own gateway, and wait for the next one."""
    old = site.stack.pid("gateway")
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: site.stack.components()["gateway"]["pid"], lambda pid: pid not in (None, old))
    site.stack.wait_ready()


def pair(
    callers: tuple[Caller, Caller], method: str, path: str, bodies: tuple[Any, Any]
) -> list[tuple[int, str]]:
    """Two bodies under one key, through two gateways at once: what each was told."""
    key = fresh("key")
    with ThreadPoolExecutor(2) as pool:
        asking = [
            pool.submit(caller.ask, method, path, body, headers={"Idempotency-Key": key})
            for caller, body in zip(callers, bodies, strict=True)
        ]
        return [status_and_code(each.result()) for each in asking]


def status_and_code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


def one_won(answers: list[tuple[int, str]]) -> bool:
    return sorted(answers)[1] == REUSED and sorted(answers)[0][0] in (200, 201, 202)


def bodies_of(tenant: Tenant, verb: str) -> tuple[str, str, tuple[Any, Any], Caller]:
    """A verb's method, path, two bodies, and who asks."""
    run = tenant.execution()
    if verb == "start":
        start = {"execution_id": fresh("run"), "agent": "bot"}
        return "POST", "/executions", (start, {**start, "request": "another"}), tenant.bot
    if verb == "propose":
        call = {"call_id": "c1", "tool": "read_file", "arguments": {}}
        return (
            "POST",
            f"/executions/{run}/tool-calls?wait=0",
            (call, {**call, "arguments": {"a": 1}}),
            tenant.bot,
        )
    if verb == "request":
        question = {"execution_id": run, "kind": "clarification", "question": "one?"}
        return "POST", "/requests", (question, {**question, "question": "two?"}), tenant.bot
    if verb == "request of its own":
        one = {"agent": "bot", "kind": "clarification", "question": "one?"}
        return "POST", "/requests", (one, {**one, "question": "two?"}), tenant.bot
    if verb == "fail":
        return "POST", f"/executions/{run}/fail", ({"error": "one"}, {"error": "two"}), tenant.bot
    if verb == "tool":
        tool = {"name": fresh("tool"), "description": "one"}
        return "PUT", f"/tools/{tool['name']}", (tool, {**tool, "description": "two"}), tenant.admin
    call = tenant.propose(run, "send_money", {"to": "GB29", "amount": 5})
    hold = f"/holds/{call['hold_id']}"
    if verb == "claim":
        return "POST", f"{hold}/claim", ({"seconds": 60}, {"seconds": 61}), tenant.rita
    if verb == "vote":
        vote = {"digest": call["digest"]}
        bodies = ({**vote, "decision": "approve"}, {**vote, "decision": "reject", "feedback": "no"})
        return "POST", f"{hold}/decision", bodies, tenant.rita
    assert tenant.decide(call).status_code == 200
    consume = {"digest": call["digest"]}
    bodies = ({**consume, "attempt_id": "a1"}, {**consume, "attempt_id": "a2"})
    return "POST", f"/executions/{run}/tool-calls/c1/consume", bodies, tenant.bot


VERBS = ("start", "propose", "request", "request of its own", "fail", "tool", "claim", "vote", "consume")


@pytest.mark.parametrize("verb", VERBS)
def test_case_26_one_key_two_bodies_through_two_gateways_at_once_has_one_winner(
    tenant: Tenant, other: httpx.Client, verb: str
) -> None:
    for _ in range(PAIRS):
        method, path, bodies, caller = bodies_of(tenant, verb)
        answers = pair((caller, Caller(other, caller.token)), method, path, bodies)
        assert one_won(answers), answers


async def test_case_26_one_ref_two_bodies_on_two_sockets_has_one_winner(
    site: Site, tenant: Tenant, other_url: str
) -> None:
    async with (
        socket(site, tenant.bot.token) as here,
        socket(site, tenant.bot.token, url=other_url) as there,
    ):
        for _ in range(PAIRS):
            _, path, bodies, _ = bodies_of(tenant, "consume")
            run, ref = path.split("/")[2], fresh("ref")
            for ws, body in zip((here, there), bodies, strict=True):
                message = {"type": "consume", "ref": ref, "execution_id": run, "call_id": "c1", "body": body}
                await ws.send(json.dumps(message))
            replies = [await reply(ws, ref) for ws in (here, there)]
            assert one_won([(each["status"], each["body"].get("code", "")) for each in replies]), replies


@pytest.mark.parametrize("verb", ["consume", "vote", "tool"])
def test_case_26_one_key_two_bodies_over_a_gateways_death(site: Site, tenant: Tenant, verb: str) -> None:
    method, path, bodies, caller = bodies_of(tenant, verb)
    key = {"Idempotency-Key": fresh("key")}
    first = status_and_code(caller.ask(method, path, bodies[0], headers=key))
    kill_gateway(site)

    assert status_and_code(caller.ask(method, path, bodies[1], headers=key)) == REUSED
    assert status_and_code(caller.ask(method, path, bodies[0], headers=key)) == first == (200, "")


def test_case_26_losers_refusal_is_recorded(tenant: Tenant, other: httpx.Client) -> None:
    codes: list[str] = []
    for _ in range(PAIRS):
        method, path, bodies, caller = bodies_of(tenant, "consume")
        pair((caller, Caller(other, caller.token)), method, path, bodies)
        run = path.split("/")[2]
        items = tenant.admin.get(f"/executions/{run}/events?limit=200").json()["items"]
        assert [item["type"] for item in items].count("GrantConsumed") == 1
        codes += [item["data"]["code"] for item in items if item["type"] == "CommandRefused"]
    # One that saw the winner's trace before it was sent leaves none.
    assert codes
    assert set(codes) == {"idempotency_key_reused"}


async def reply(ws: websockets.ClientConnection, ref: str) -> dict[str, Any]:
    while (message := await received(ws)).get("ref") != ref:
        pass
    return message


async def subscribed(ws: websockets.ClientConnection, channels: list[str], cursor: str | None = None) -> None:
    message: dict[str, Any] = {"type": "subscribe", "channels": channels}
    await ws.send(json.dumps(message if cursor is None else {**message, "cursor": cursor}))


async def events_until(ws: websockets.ClientConnection, wanted: set[str]) -> list[dict[str, Any]]:
    """The facts on the channel `events`, until these have come: those of different partitions have no order."""
    found: list[dict[str, Any]] = []
    while not wanted <= {event["event_id"] for event in found}:
        message = await received(ws)
        assert message["type"] != "resync_required"
        if message["type"] == "event":
            found.append(message)
    return found


def recorded(tenant: Tenant, run: str) -> list[str]:
    """The ids of an execution's events, in order."""
    items = tenant.admin.get(f"/executions/{run}/events?limit=200").json()["items"]
    return [item["event_id"] for item in items]


async def test_case_27_cursor_after_its_gateways_kill_and_at_another_gateway_gives_every_message_once(
    site: Site, tenant: Tenant, other_url: str
) -> None:
    """What happened before, during and after the death comes once, at whichever gateway."""
    _, held = await asyncio.to_thread(tenant.held)
    earlier = await asyncio.to_thread(every_event_of, tenant, held["cursor"])
    async with socket(site, tenant.rita.token) as ws:
        await subscribed(ws, ["events", "holds"])
        before, _ = await asyncio.to_thread(tenant.held)
        first = await events_until(ws, {(await asyncio.to_thread(recorded, tenant, before))[-1]})
        cursor = first[1]["cursor"]

    _, call = await asyncio.to_thread(tenant.held)
    await asyncio.to_thread(tenant.decide, call)
    await asyncio.to_thread(kill_gateway, site)
    _, held = await asyncio.to_thread(tenant.held)
    wanted = await asyncio.to_thread(every_event_of, tenant, held["cursor"])
    shown = {event["event_id"] for event in first[:2]} | earlier

    for url in (site.url, other_url):
        async with socket(site, tenant.rita.token, url=url) as ws:
            await subscribed(ws, ["events"], cursor)
            seen = [event["event_id"] for event in await events_until(ws, wanted - shown)]
            assert len(seen) == len(set(seen))
            assert set(seen) == wanted - shown
            # And then what comes.
            run = await asyncio.to_thread(tenant.execution)
            (started,) = await asyncio.to_thread(recorded, tenant, run)
            assert [event["event_id"] for event in await events_until(ws, {started})] == [started]
            wanted.add(started)


async def test_case_27_holds_that_opened_and_closed_meanwhile_are_told_as_they_stood_then(
    site: Site, tenant: Tenant
) -> None:
    async with socket(site, tenant.rita.token) as ws:
        await subscribed(ws, ["holds"])
        cursor = await asked_cursor(ws)
    _, call = await asyncio.to_thread(tenant.held)
    await asyncio.to_thread(kill_gateway, site)
    await asyncio.to_thread(tenant.decide, call)

    async with socket(site, tenant.rita.token) as ws:
        await subscribed(ws, ["holds"], cursor)
        told: list[dict[str, Any]] = []
        while len(told) < 2:
            # A hold of an earlier test may be told as well: the cursor is of before this one's.
            each = await received(ws)
            told += [each] if each.get("hold_id") == call["hold_id"] else []
    assert [(each["type"], each["hold_id"], each["status"]) for each in told] == [
        ("tool_call_pending_review", call["hold_id"], "open"),
        ("hold_resolved", call["hold_id"], "resolved"),
    ]


def test_case_27_server_sent_events_go_on_from_the_last_id_after_a_kill(site: Site, tenant: Tenant) -> None:
    run = tenant.execution()
    ids = streamed(tenant, recorded(tenant, run)[-1], None)
    kill_gateway(site)
    second = tenant.execution()
    more = streamed(tenant, recorded(tenant, second)[-1], ids[-1][1])
    assert recorded(tenant, second)[-1] in [event_id for event_id, _ in more]
    assert not {event_id for event_id, _ in ids} & {event_id for event_id, _ in more}


def streamed(tenant: Tenant, until: str, cursor: str | None) -> list[tuple[str, str]]:
    """The events of a stream up to one, each with its cursor; without a cursor, from the first of a new one on."""
    headers = {"Authorization": f"Bearer {tenant.rita.token}"}
    if cursor is None:
        cursor = tenant.rita.get("/holds").json()["cursor"]
        tenant.execution()
        until = ""
    found: list[tuple[str, str]] = []
    with tenant.client.stream(
        "GET", "/v1/events/stream", headers={**headers, "Last-Event-ID": cursor}
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                message = json.loads(line[6:])
                assert message["type"] == "event", message
                found.append((message["event_id"], message["cursor"]))
                if not until or message["event_id"] == until:
                    return found
    return found


async def asked_cursor(ws: websockets.ClientConnection) -> str:
    """The cursor of an answer, which it has once the subscription stands: everything before it was given."""
    while (cursor := (await asked(ws, "ping")).get("cursor")) is None:
        pass
    return str(cursor)


def every_event_of(tenant: Tenant, cursor: str) -> set[str]:
    """Every recorded fact of a tenant's executions, no earlier than a cursor."""
    items = tenant.admin.get(f"/executions?limit=200&after={cursor}").json()["items"]
    runs = [item["execution_id"] for item in items]
    return {event_id for run in runs for event_id in recorded(tenant, run)}
