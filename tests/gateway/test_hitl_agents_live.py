"""The agents of docs/hitl/integration.md and docs/sdk.md, as they stand there, on a running stack."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from placet import AsyncPlacet, AsyncTurn, ChatEvent, Placet
from tests.gateway.conftest import Caller, Doors
from tests.gateway.people import answer_next, decide, open_hold
from tests.gateway.test_chat_live import serving
from tests.gateway.test_openai_agent_live import calls, endpoint
from tests.pages import Block
from tests.servers.stack import PLACET

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def fresh(word: str) -> str:
    return f"{word}-{uuid4().hex[:10]}"


@contextmanager
def shell(text: str, directory: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A command while it runs, in a directory; it is ended as Ctrl-C or `kill` does."""
    process = subprocess.Popen(
        ["bash", "-euc", f"exec {text}"],
        env={**os.environ, "PATH": f"{PLACET.parent}{os.pathsep}{os.environ['PATH']}", **environment},
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_module_of_an_agent(doors: Doors, anna: Caller, page_blocks: list[Block], tmp_path: Path) -> None:
    module, worker, chat = page_blocks
    agent = fresh("filer")
    (tmp_path / "agents.py").write_text(module.text.replace('"filer"', f'"{agent}"'), encoding="utf-8")
    access = {"PLACET_URL": doors.url, "PLACET_TOKEN": doors.token("bot", "agent", agent=agent)}
    with (
        shell(worker.text, tmp_path, **access),
        shell(chat.text.replace("filer", agent), tmp_path, **access) as talking,
    ):
        answer_next(anna, agent, "archive", kind="decision")
        call = open_hold(anna, agent, tool="move_file")
        assert call["arguments"] == {"path": "invoice.pdf", "to": "archive"}
        decide(anna, call, decision="approve")
        said, _ = talking.communicate(timeout=60)
    events = [json.loads(line) for line in said.splitlines()]
    texts = [event["data"]["text"] for event in events if event["event"] == "message"]
    assert texts == ["Let me see.", "invoice.pdf is in archive"]
    assert events[-1]["event"] == "complete"


async def test_continuing_a_chat(
    doors: Doors, anna: Caller, page_blocks: list[Block], capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = page_blocks
    agent = fresh("deployer")

    async def deploy(turn: AsyncTurn) -> str:
        return f"deployed to {await turn.hitl.request_decision('Where?', ['staging', 'production'])}"

    def continued(request_id: str) -> None:
        with Placet(doors.url, token=anna.token) as person:
            exec(compile(block.text, block.page, "exec"), {"placet": person, "request_id": request_id})

    async with serving(doors, agent, deploy, wait_s=0) as client:
        stream = client.conversations.chat("deploy it")
        asked = await anext(stream)
        await asyncio.to_thread(continued, asked.body["request_id"])
        assert [event.type async for event in stream] == ["hitl_resolved", "message", "complete"]
    assert capsys.readouterr().out == "deployed to staging\n"


class Bank:
    """Where the money goes in these pages."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []

    def transfer(self, recipient: str, amount: float) -> str:
        self.sent.append((recipient, amount))
        return f"sent {amount} to {recipient}"


async def texts(events: AsyncIterator[ChatEvent]) -> list[str]:
    return [event.body["text"] async for event in events if event.type == "message"]


async def test_agent_on_a_model(
    doors: Doors, anna: Caller, page_blocks: list[Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = page_blocks
    agent, bank = fresh("payer"), Bank()
    token = doors.token("bot", "agent", agent=agent)
    monkeypatch.setenv("PLACET_URL", doors.url)
    answers = (
        calls("ask_human", question="To whom?"),
        calls("send_money", recipient="GB29", amount=98.7),
        {"content": "It is paid."},
    )
    with endpoint(*answers) as (url, _):
        names: dict[str, Any] = {"bank": bank, "ENDPOINT": url, "KEY": "none", "TOKEN": token}
        text = block.text.replace('"payer"', f'"{agent}"')
        names = await Block(*block[:-1], text).run(doors.url, **names)
        worker = asyncio.create_task(names["main"]())
        async with AsyncPlacet(doors.url, token=token, agent=agent) as client:
            said = asyncio.create_task(texts(client.conversations.chat("Pay the invoice.")))
            await asyncio.to_thread(answer_next, anna, agent, "GB29", kind="clarification")
            call = await asyncio.to_thread(open_hold, anna, agent, tool="send_money")
            await asyncio.to_thread(decide, anna, call, decision="approve")
            assert await said == ["It is paid."]
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert bank.sent == [("GB29", 98.7)]


async def test_conversation_of_the_client(
    doors: Doors,
    anna: Caller,
    page_blocks: list[Block],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (block,) = page_blocks
    agent = fresh("deployer")
    monkeypatch.setenv("PLACET_URL", doors.url)
    monkeypatch.setenv("PLACET_TOKEN", doors.token("bot", "agent", agent=agent))
    names = await Block(*block[:-1], block.text.replace('"deployer"', f'"{agent}"')).run(doors.url)
    serving_it = asyncio.create_task(names["serve"]())
    talking = asyncio.create_task(names["talk"]())
    await asyncio.to_thread(answer_next, anna, agent, "staging")
    await talking
    serving_it.cancel()
    await asyncio.gather(serving_it, return_exceptions=True)
    assert capsys.readouterr().out.splitlines() == [
        "hitl_requested Where?",
        "hitl_resolved Where?",
        "message deployed to staging",
        "complete Deploy the release.",
    ]
