"""kill -9 of agent, gateway, gRPC role, decider and broker while questions of all four kinds are open, in chats."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from placet import AsyncPlacet, ChatEvent
from schemas.human_input.v1 import human_input_pb2 as messages
from schemas.human_input.v1 import human_input_pb2_grpc as services
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

# Each function writes what it was answered into a file of its own, once: a second line would be a second run.
MODULE = """
import pathlib
import placet

@placet.agent("bot")
def answer(turn):
    @turn.run.gated(tool="read_file")
    def read_file(path):
        with open("{directory}/" + path, "a") as file:
            file.write(turn.message + chr(10))
        return path

    kind = turn.message.split()[0]
    read_file(turn.turn_id)
    if kind == "clarification":
        found = turn.hitl.request_clarification("Which one?", timeout_seconds=600)
    elif kind == "decision":
        found = turn.hitl.request_decision("Where?", options=["staging", "production"], timeout_seconds=600)
    elif kind == "permission":
        found = turn.hitl.request_permission(action="rm -rf build", timeout_seconds=600).granted
    else:
        found = turn.hitl.request_env_var(["API_KEY"], timeout_seconds=600)["API_KEY"] == "s3cret"
    return kind + " " + str(found)
"""
ANSWERS: dict[str, Any] = {
    "clarification": "the second",
    "decision": "staging",
    "permission": True,
    "env_var": {"API_KEY": "s3cret"},
}
SAID = {
    "clarification": "clarification the second",
    "decision": "decision staging",
    "permission": "permission True",
    "env_var": "env_var True",
}


@contextmanager
def worker(site: Site, directory: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    (directory / "clerks.py").write_text(MODULE.format(directory=directory))
    environment = {**os.environ, "PLACET_URL": site.url, "PLACET_TOKEN": site.agent_token}
    placet = str(Path(sys.executable).with_name("placet"))
    with subprocess.Popen(
        [placet, "agent", "run", "clerks", *more], env=environment, cwd=directory
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def kill(site: Site, component: str) -> None:
    old = site.stack.pid(component)
    os.kill(old, signal.SIGKILL)

    def again() -> None:
        wait_for(lambda: site.stack.components()[component]["pid"], lambda pid: pid not in (None, old))
        site.stack.wait_ready()

    await asyncio.to_thread(again)


async def until_asked(stream: Any) -> dict[str, Any]:
    async for event in stream:
        assert event.type != "error", event
        if event.type == "hitl_requested":
            return dict(event.body)
    raise AssertionError("the stream ended without a question")


def respond(site: Site, asked: dict[str, Any], kind: str) -> None:
    with site.reviewer() as person:
        person.conversations.respond(asked["request_id"], ANSWERS[kind])


async def test_questions_of_all_kinds_survive_kills_of_every_process(site: Site, tmp_path: Path) -> None:
    address = site.stack.status()["grpc_address"]
    with worker(site, tmp_path, "--wait", "0") as first:
        async with AsyncPlacet(site.url, token=site.agent_token, agent="bot") as client:
            ids = {kind: f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ANSWERS}
            streams = {
                kind: client.conversations.chat(f"{kind} please", message_id=ids[kind], agent="bot")
                for kind in ANSWERS
            }
            asked = {kind: await until_asked(stream) for kind, stream in streams.items()}
            metadata = (("authorization", f"Bearer {site.agent_token}"),)
            async with grpc.aio.insecure_channel(address) as channel:
                task = await services.HumanInputToolStub(channel).Run(
                    messages.RunRequest(prompt="May I?"), metadata=metadata, wait_for_ready=True
                )

            first.kill()
            for component in ("gateway", "grpc", "decider", "kafka"):
                await kill(site, component)

            with worker(site, tmp_path, "--wait", "0"):
                for kind, question in asked.items():
                    await asyncio.to_thread(respond, site, question, kind)
                rest = await asyncio.gather(*(_rest(stream) for stream in streams.values()))
            for kind, events in zip(ANSWERS, rest, strict=True):
                texts = [event.body["text"] for event in events if event.type == "message"]
                assert texts == [SAID[kind]], kind
                assert events[-1].type == "complete"
                # The call before the question ran once, although the function began at least twice.
                assert (tmp_path / ids[kind]).read_text() == f"{kind} please\n"

            await asyncio.to_thread(_answer_task, site, task.task_id)
            async with grpc.aio.insecure_channel(address) as channel:
                found = await services.HumanInputStub(channel).GetHumanInput(
                    messages.GetHumanInputRequest(task_id=task.task_id, wait_seconds=30),
                    metadata=metadata,
                    wait_for_ready=True,
                )
            assert found.status == "answered"


async def test_turn_of_a_killed_worker_goes_on_at_another_when_its_lease_ends(
    site: Site, tmp_path: Path
) -> None:
    message_id = f"m-{uuid.uuid4().hex[:8]}"
    async with AsyncPlacet(site.url, token=site.agent_token, agent="bot") as client:
        stream = client.conversations.chat("decision please", message_id=message_id, agent="bot")
        with worker(site, tmp_path) as first:
            asked = await until_asked(stream)
            first.kill()
        await asyncio.to_thread(respond, site, asked, "decision")
        with worker(site, tmp_path):
            events = await _rest(stream)
    assert [event.body["text"] for event in events if event.type == "message"] == ["decision staging"]
    assert (tmp_path / message_id).read_text() == "decision please\n"


async def _rest(stream: Any) -> list[ChatEvent]:
    return [event async for event in stream]


def _answer_task(site: Site, task_id: str) -> None:
    with site.reviewer() as person:
        person.conversations.respond(task_id, "yes")
