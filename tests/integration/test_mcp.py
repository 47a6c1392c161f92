"""`placet mcp`, as clients of the official SDK use it: over stdio, and over HTTP with tokens of their own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from ops.ports import free_port
from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import Site
from tests.servers.stack import PLACET, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site) as found:
        yield found


def environment(tenant: Tenant, token: str | None) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PLACET_")}
    named = {} if token is None else {"PLACET_TOKEN": token}
    return {**own, "PLACET_URL": tenant.site.url, **named}


@asynccontextmanager
async def over_stdio(tenant: Tenant, token: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=str(PLACET), args=["mcp"], env=environment(tenant, token))
    async with Client(server) as client:
        yield client


@contextmanager
def serving_http(tenant: Tenant) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([PLACET, "mcp", "--http-port", str(port)], env=environment(tenant, "none"))
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        wait_for(lambda: _listens(port), bool)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def over_http(url: str, *tokens: str) -> AsyncIterator[Client]:
    headers = [("Authorization", f"Bearer {token}") for token in tokens]
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as found,
    ):
        yield found


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content or {}
    return found


def decide(tenant: Tenant, task_id: str, **word: Any) -> None:
    request = tenant.rita.get(f"/requests/{task_id}").json()
    answer = tenant.rita.post(f"/holds/{request['hold_id']}/decision", word)
    assert answer.status_code == 200, answer.text


async def asked_and_answered(tenant: Tenant, client: Client) -> str:
    started = await call(client, "human_input", prompt="Delete the account?")
    task_id = str(started["task_id"])
    assert started == {"status": "waiting_for_human", "task_id": task_id}
    early = await call(client, "get_human_input", task_id=task_id)
    assert early == {"status": "waiting_for_human", "response": None, "feedback": ""}
    waiting = asyncio.ensure_future(call(client, "get_human_input", task_id=task_id, wait_seconds=30))
    await asyncio.to_thread(decide, tenant, task_id, decision="respond", value="Да")
    assert await waiting == {"status": "answered", "response": "Да", "feedback": ""}
    return task_id


async def test_agent_over_stdio_asks_and_fetches_the_answer(tenant: Tenant) -> None:
    async with over_stdio(tenant, tenant.bot.token) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"human_input", "get_human_input"}
        assert tools["get_human_input"].annotations is not None
        assert tools["get_human_input"].annotations.read_only_hint
        await asked_and_answered(tenant, client)
        refused = await call(client, "human_input", prompt="Really?")
        decide(tenant, refused["task_id"], decision="reject", feedback="ask the owner")
        ended = await call(client, "get_human_input", task_id=refused["task_id"], wait_seconds=30)
        assert ended == {"status": "rejected", "response": None, "feedback": "ask the owner"}
        for tool, arguments in (
            ("human_input", {"prompt": ""}),
            ("human_input", {}),
            ("get_human_input", {"task_id": "nobody"}),
            ("get_human_input", {"task_id": "a/b"}),
        ):
            assert (await client.call_tool(tool, arguments)).is_error, (tool, arguments)


async def test_callers_over_http_have_their_own_rights_and_no_others(tenant: Tenant, site: Site) -> None:
    with serving_http(tenant) as url, new_tenant(site) as stranger:
        async with over_http(url, tenant.bot.token) as client, over_http(url, stranger.bot.token) as other:
            task_id = await asked_and_answered(tenant, client)
            theirs = await other.call_tool("get_human_input", {"task_id": task_id})
            assert theirs.is_error
            assert "not_found" in str(theirs.content)
            assert (await call(client, "get_human_input", task_id=task_id))["response"] == "Да"
        async with over_http(url) as nobody:
            answer = await nobody.call_tool("human_input", {"prompt": "?"})
            assert answer.is_error
            assert "unauthenticated" in str(answer.content)
        async with over_http(url, tenant.bot.token, stranger.bot.token) as two:
            answer = await two.call_tool("human_input", {"prompt": "?"})
            assert answer.is_error
            assert "malformed" in str(answer.content)


def test_client_that_ends_while_it_waits_ends_the_server_without_a_traceback(tenant: Tenant) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    with subprocess.Popen(
        [PLACET, "mcp"],
        env=environment(tenant, tenant.bot.token),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None

        def send(method: str, **said: Any) -> None:
            print(json.dumps({"jsonrpc": "2.0", "method": method, **said}), file=process.stdin, flush=True)

        try:
            send("initialize", id=1, params=hello)
            assert process.stdout.readline()
            send("notifications/initialized")
            send("tools/call", id=2, params={"name": "human_input", "arguments": {"prompt": "?"}})
            asked = json.loads(process.stdout.readline())["result"]["structuredContent"]
            waits = {"task_id": asked["task_id"], "wait_seconds": 3}
            send("tools/call", id=3, params={"name": "get_human_input", "arguments": waits})
            process.stdout.close()
            process.stdin.close()
            assert process.wait(60) == 141
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_token_that_is_not_accepted_ends_the_server_at_its_start(tenant: Tenant) -> None:
    with subprocess.Popen(
        [PLACET, "mcp"],
        env=environment(tenant, "bad"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.wait(60) == 1
            assert process.stderr is not None
            assert "unauthenticated" in process.stderr.read()
        finally:
            process.kill()
