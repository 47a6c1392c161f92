"""The blocks of docs/hitl that ask questions, as they stand there, on a running stack."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client, StdioServerParameters

from placet import AsyncPlacet, AsyncTurn, HITLHandler, Permission
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, event_types, open_hold
from tests.gateway.test_chat_live import serving
from tests.gateway.test_hitl_agents_live import shell
from tests.pages import ADDRESS, Block
from tests.servers.stack import PLACET, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


def told(block: Block) -> list[str]:
    """The first words of the lines of a block."""
    return [line.split()[0] for line in block.text.splitlines()]


def run_shell(block: Block, url: str, **environment: str) -> str:
    """Run a block in a shell as it stands; what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text.replace(ADDRESS, url)],
        env={**os.environ, "PATH": f"{PLACET.parent}{os.pathsep}{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_first_question(doors: Doors, anna: Caller, page_blocks: list[Block], tmp_path: Path) -> None:
    (block,) = page_blocks
    agent = fresh("deployer")
    program = block.text.replace(ADDRESS, doors.url).replace('"deployer"', f'"{agent}"')
    (tmp_path / "ask.py").write_text(program, encoding="utf-8")
    token = doors.token("bot", "agent", agent=agent)
    with shell(f"{sys.executable} ask.py", tmp_path, PLACET_TOKEN=token) as asking:
        hold = answer_next(anna, agent, "staging")
        said, _ = asking.communicate(timeout=60)
    assert (asking.returncode, said) == (0, "deploying to staging\n")
    assert (hold["kind"], hold["decision_type"]) == ("decision", "branch")


def test_events_of_a_question(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("asker")
    bot = doors.caller("bot", "agent", agent=agent)
    asked = bot.post("/v1/requests", {"question": "Which account?"})
    assert asked.status_code == 201, asked.text
    answer_next(anna, agent, "travel")
    assert event_types(anna, asked.json()["execution_id"]) == told(block)


async def test_events_of_a_turn(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        return str(await turn.hitl.request_decision("Where?", ["staging", "production"]))

    async with serving(doors, agent, deploy, wait_s=0) as client:
        stream = client.conversations.chat("deploy")
        where = (await anext(stream)).body["execution_id"]

        def answer_once_given_back() -> None:
            seen = wait_for(lambda: event_types(anna, where), lambda types: "TurnYielded" in types)
            assert seen == told(block)[: len(seen)]
            answer_next(anna, agent, "staging")

        await asyncio.to_thread(answer_once_given_back)
        assert [event.type async for event in stream] == ["hitl_resolved", "message", "complete"]
    assert await asyncio.to_thread(event_types, anna, where) == told(block)


def test_reads_of_the_fold(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("reader")
    bot = doors.caller("bot", "agent", agent=agent)
    conversation = bot.execution()
    message = bot.post(f"/v1/executions/{conversation}/messages", {"text": "hello"})
    assert message.status_code == 201, message.text
    asked = bot.post("/v1/requests", {"question": "Which account?", "execution_id": conversation}).json()
    said = run_shell(
        block,
        doors.url,
        PLACET_URL=doors.url,
        PLACET_TOKEN=anna.token,
        CONVERSATION=conversation,
        REQUEST=asked["request_id"],
        MOMENT="1",
    )
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(said):
        one, at = decoder.raw_decode(said, at)
        found.append(one)
    request, execution, messages = found
    assert (request["question"], request["status"]) == ("Which account?", "open")
    assert (execution["version"], execution["open_holds"]) == (1, 0)
    assert [message["text"] for message in messages["items"]] == ["hello"]


async def test_kinds(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    agent = fresh("asker")
    values: list[Any] = [
        "neither",
        "production",
        {"OPENAI_API_KEY": "sk-1", "REGION": "eu-1"},
        {"granted": True, "remember": True},
    ]
    kinds = ["clarification", "decision", "env_var", "permission"]
    token = doors.token("bot", "agent", agent=agent)
    async with AsyncPlacet(doors.url, token=token, agent=agent) as client, client.execution() as run:
        names: dict[str, Any] = {"handler": HITLHandler(run)}
        for block, value, kind in zip(page_blocks, values, kinds, strict=True):
            answering = asyncio.to_thread(answer_next, anna, agent, value, kind=kind)
            names, _ = await asyncio.gather(block.run(doors.url, **names), answering)
    assert (names["wanted"], names["where"]) == ("neither", "production")
    assert names["variables"] == {"OPENAI_API_KEY": "sk-1", "REGION": "eu-1"}
    assert names["permission"] == Permission(True, remember=True)


async def test_default_and_reminder(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("asker")
    token = doors.token("bot", "agent", agent=agent)
    async with AsyncPlacet(doors.url, token=token, agent=agent) as client, client.execution() as run:
        names = await block.run(doors.url, HITLHandler=HITLHandler, run=run)
    assert names["color"] == "green"
    types = await asyncio.to_thread(event_types, anna, run.id)
    assert types[1:-1] == [
        "HumanInputRequested",
        "HoldOpened",
        "HoldReminded",
        "HoldExpired",
        "HumanInputProvided",
    ]


async def test_web_worker(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent = fresh("deployer")
    token = doors.token("bot", "agent", agent=agent)
    async with AsyncPlacet(doors.url, token=token, agent=agent) as client:
        names = await block.run(doors.url, placet=client)
        execution_id = fresh("deploy")
        status, body = await names["deploy"](execution_id)
        hold = await asyncio.to_thread(answer_next, anna, agent, "production")
        asked = {"question": "Where?", "options": ["staging", "production"]}
        assert (status, body) == (202, {"request_id": hold["request_id"], **asked})
        for _ in range(2):
            assert await names["deploy"](execution_id) == (200, {"deployed_to": "production"})


def test_human_input_by_curl(doors: Doors, bot: Caller, anna: Caller, page_blocks: list[Block]) -> None:
    run, shown, fetch = page_blocks
    said = json.loads(run_shell(run, doors.url, TOKEN=bot.token))
    task_id = said["result"]["structValue"]["fields"]["task_id"]["stringValue"]
    assert json.loads(shown.text.replace("a1b2…", task_id)) == said
    fetch = Block(*fetch[:-1], fetch.text.replace("a1b2…", task_id))
    assert json.loads(run_shell(fetch, doors.url, TOKEN=bot.token))["status"] == "waiting_for_human"
    hold = open_hold(anna, "billing", request_id=task_id)
    decide(anna, hold, decision="respond", value="Yes, go on.")
    assert json.loads(run_shell(fetch, doors.url, TOKEN=bot.token)) == {"response": "Yes, go on."}


async def test_mcp_by_its_configuration(doors: Doors, bot: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    server = json.loads(block.text.replace(ADDRESS, doors.url).replace('"…"', json.dumps(bot.token)))
    named = server["mcpServers"]["placet"]
    path = f"{PLACET.parent}{os.pathsep}{os.environ['PATH']}"
    parameters = StdioServerParameters(
        command=named["command"], args=named["args"], env={**os.environ, "PATH": path, **named["env"]}
    )
    async with Client(parameters) as client:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} == {"human_input", "get_human_input"}
        result = await client.call_tool("human_input", {"prompt": "Go on?"})
        assert result.structured_content is not None
        assert re.fullmatch(r"[0-9a-f-]{36}", result.structured_content["task_id"])


async def test_human_input_by_grpc(
    doors: Doors, anna: Caller, page_blocks: list[Block], capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = page_blocks
    agent = fresh("asker")
    names = {
        "TOKEN": doors.token("bot", "agent", agent=agent),
        "ADDRESS": doors.stack.status()["grpc_address"],
    }
    answering = asyncio.to_thread(answer_next, anna, agent, "Yes.")
    await asyncio.gather(block.run(doors.url, **names), answering)
    assert capsys.readouterr().out.splitlines()[-1] == "answered Yes."


async def test_human_input_by_the_bridge(doors: Doors, anna: Caller, page_blocks: list[Block]) -> None:
    (block,) = page_blocks
    agent, task = fresh("asker"), fresh("task")
    text = block.text.replace("ws://127.0.0.1:8000", doors.url.replace("http", "ws", 1))
    names = {"TOKEN": doors.token("bot", "agent", agent=agent), "TASK": task}
    asking = asyncio.create_task(Block(*block[:-1], text).run(doors.url, **names))
    await asyncio.to_thread(answer_next, anna, agent, "Yes.")
    message = (await asking)["message"]
    assert (message["type"], message["task_id"], message["response"]) == ("answer", task, "Yes.")


REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"kind": "clarification"}, "  ", "invalid"),
    ({"kind": "decision", "options": ["a", "b"]}, "c", "unknown_option"),
    ({"kind": "decision", "options": ["a", "b"]}, ["a"], "invalid"),
    ({"kind": "decision", "options": [{"id": 1, "label": "One"}]}, {"id": 1}, "unknown_option"),
    ({"kind": "decision", "options": ["a"], "allow_custom": True}, " ", "invalid"),
    ({"kind": "decision", "options": ["a"], "allow_custom": True}, 5, "unknown_option"),
    ({"kind": "decision", "options": ["a", "b"], "multiple": True}, "a", "invalid"),
    ({"kind": "decision", "options": ["a", "b"], "multiple": True}, [], "invalid"),
    ({"kind": "decision", "options": ["a", "b"], "multiple": True}, ["a", "a"], "invalid"),
    ({"kind": "permission"}, "yes", "unknown_option"),
    ({"kind": "permission", "remember": True}, {"granted": True}, "invalid"),
    ({"kind": "env_var", "fields": ["KEY"]}, {"OTHER": "x"}, "invalid_arguments"),
    ({"kind": "env_var", "fields": ["KEY"]}, {}, "invalid_arguments"),
    ({"kind": "env_var", "fields": [{"name": "K", "pattern": "^eu-"}]}, {"K": "us-1"}, "invalid_arguments"),
]


@pytest.mark.parametrize(("asked", "value", "code"), REFUSED)
def test_answer_is_refused_as_the_page_on_request_types_says(
    doors: Doors, anna: Caller, asked: dict[str, Any], value: Any, code: str
) -> None:
    bot = doors.caller("bot", "agent", agent=fresh("asker"))
    request = bot.post("/v1/requests", {"question": "Which?", **asked})
    assert request.status_code == 201, request.text
    word = {"request_id": request.json()["request_id"], "response": value}
    answer = anna.post("/agent/hitl/respond", word)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    hold = bot.get(f"/v1/requests/{word['request_id']}").json()
    assert hold["status"] == "open"


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"multiple": True}, "clarification"),
        ({"action": "x"}, "decision"),
        ({"default": True}, "permission"),
        ({"default": "x"}, "env_var"),
    ],
)
def test_field_of_another_kind_is_refused(doors: Doors, more: dict[str, Any], kind: str) -> None:
    bot = doors.caller("bot", "agent", agent=fresh("asker"))
    fields = {"fields": ["KEY"]} if kind == "env_var" else {}
    answer = bot.post("/v1/requests", {"question": "Which?", "kind": kind, **fields, **more})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text
