"""`placet mcp` in memory: what it says of itself and its tools, and what it says to wrong arguments."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import httpx
import pytest
import uvicorn
from mcp import Client
from starlette.responses import JSONResponse, Response

from ops.ports import LOOPBACK, free_port
from placet import AsyncPlacet, Unauthenticated, mcp_server
from placet.mcp_server import PROMPT_MAX_CHARS, WAIT_MAX_S, server_of
from schemas.limits import TEXT_MAX_CHARS
from tests.sdk.scripted import Asked, Scripted, serving


async def unanswered(asked: Asked) -> Response:
    return JSONResponse({"status": "waiting_for_human", "task_id": "t1"}, 202)


async def called(tool: str, **arguments: Any) -> tuple[bool, str, list[Asked]]:
    """Whether a call of a tool is an error, its text, and what the gateway was asked."""
    async with (
        serving(Scripted(on_http=unanswered)) as script,
        AsyncPlacet(script.url, token="t", transport="rest") as gateway,
        Client(server_of(gateway)) as client,
    ):
        result = await client.call_tool(tool, arguments)
        return bool(result.is_error), result.content[0].text, script.asked  # type: ignore[union-attr]


async def test_server_says_its_version_and_the_limits_of_its_arguments() -> None:
    async with AsyncPlacet("http://127.0.0.1:9", token="t") as gateway, Client(server_of(gateway)) as client:
        assert client.server_info is not None
        assert client.server_info.version == version("placet")
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    assert [schema["additionalProperties"] for schema in tools.values()] == [False, False]
    prompt = tools["human_input"]["properties"]["prompt"]
    assert (prompt["minLength"], prompt["maxLength"]) == (1, TEXT_MAX_CHARS)
    wait = tools["get_human_input"]["properties"]["wait_seconds"]
    assert (wait["minimum"], wait["maximum"]) == (0, 50)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("human_input", {}, "invalid: prompt: it is missing; give a text of 1 to 16,384 characters"),
        ("human_input", {"prompt": ""}, "invalid: prompt: it must be a text of 1 to 16,384 characters"),
        ("human_input", {"prompt": 5}, "invalid: prompt: it must be a text of 1 to 16,384 characters"),
        (
            "human_input",
            {"prompt": "x" * (PROMPT_MAX_CHARS + 1)},
            "invalid: prompt: it must be a text of 1 to 16,384 characters",
        ),
        (
            "human_input",
            {"prompt": "?", "options": []},
            "invalid: options: human_input has no such argument; remove it",
        ),
        (
            "get_human_input",
            {"wait_seconds": 1},
            "invalid: task_id: it is missing; give the text that human_input returned as task_id",
        ),
        (
            "get_human_input",
            {"task_id": "t1", "wait_seconds": WAIT_MAX_S + 1},
            "invalid: wait_seconds: it must be seconds from 0 to 50",
        ),
    ],
)
async def test_wrong_arguments_are_refused_in_words_and_nothing_is_asked(
    tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert await called(tool, **arguments) == (True, told, [])


async def test_longest_wait_is_asked_for() -> None:
    is_error, _, asked = await called("get_human_input", task_id="t1", wait_seconds=WAIT_MAX_S)
    assert not is_error
    assert [one.params["wait"] for one in asked] == ["50"]


async def test_http_answers_503_while_too_many_connections_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "CONNECTIONS_MAX", 3)
    port, ready = free_port(), asyncio.Event()
    async with serving(Scripted(on_http=unanswered)) as script, AsyncPlacet(script.url, token="t") as gateway:
        with monkeypatch.context() as patch:
            started: list[uvicorn.Server] = []

            class Server(uvicorn.Server):
                def __init__(self, config: uvicorn.Config) -> None:
                    super().__init__(config)
                    started.append(self)

            patch.setattr(uvicorn, "Server", Server)
            serve = server_of(gateway).run_streamable_http_async(port=port, on_ready=ready.set)
            server = asyncio.create_task(serve)
            await ready.wait()
        others = [await asyncio.open_connection(LOOPBACK, port) for _ in range(2)]
        found = []
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}") as client:
            found.append((await client.get("/nothing", headers={"Connection": "close"})).status_code)
            others += [await asyncio.open_connection(LOOPBACK, port) for _ in range(2)]
            found.append((await client.get("/nothing")).status_code)
        for _, writer in others:
            writer.close()
        (running,) = started
        running.should_exit = True
        await server
    assert found == [404, 503]


async def refuse(asked: Asked) -> Response:
    return JSONResponse({"code": "unauthenticated", "status": 401, "detail": "the token is malformed"}, 401)


async def test_token_that_is_not_accepted_is_told_at_the_start() -> None:
    async with serving(Scripted(on_http=refuse)) as script, AsyncPlacet(script.url, token="bad") as gateway:
        with pytest.raises(Unauthenticated, match="the token is malformed"):
            await server_of(gateway).run_stdio_async()


async def test_gateway_that_is_not_there_is_told_at_the_start_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mcp_server, "START_S", 0.2)
    async with AsyncPlacet("http://127.0.0.1:9", token="t") as gateway:
        await mcp_server.check_gateway(gateway)
    assert "no gateway at http://127.0.0.1:9 yet" in caplog.text


async def test_role_that_may_not_list_is_no_wrong_token() -> None:
    async def forbid(asked: Asked) -> Response:
        return JSONResponse({"code": "not_authorised", "status": 403, "detail": "no"}, 403)

    async with serving(Scripted(on_http=forbid)) as script, AsyncPlacet(script.url, token="t") as gateway:
        await mcp_server.check_gateway(gateway)
        assert [asked.path for asked in script.asked] == ["/v1/executions"]


async def test_wait_that_is_cut_off_again_and_again_is_an_error_before_the_client_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp_server, "ANSWER_MAX_S", 0.3)

    async def cut(asked: Asked) -> Response:
        return Response(status_code=502)

    async with (
        serving(Scripted(on_http=cut)) as script,
        AsyncPlacet(script.url, token="t", transport="rest") as gateway,
        Client(server_of(gateway)) as client,
    ):
        result = await client.call_tool("get_human_input", {"task_id": "t1", "wait_seconds": 50})
    assert result.is_error
    assert "call get_human_input again" in result.content[0].text  # type: ignore[union-attr]
