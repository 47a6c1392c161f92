"""Sensitive values planted in a whole stack: nobody but who asked for them ever gets to see one, in any writing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from log.places import TopicPartition
from schemas.record import OutRecord
from tests.integration.canaries import (
    Canary,
    Finds,
    look_at_directory,
    look_at_processes,
    look_at_topics,
)
from tests.integration.doors import (
    Tenant,
    dead_letter,
    fresh,
    key_of,
    new_tenant,
    received,
    refused,
    site_log,
    socket,
)
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

LOGIN: dict[str, Any] = {
    "name": "login",
    "annotations": {"destructiveHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {
            "user": {"type": "string"},
            "token": {"type": "string", "maxLength": 200, "x-placet-sensitive": True},
            "more": {"type": "object", "x-placet-sensitive": True},
        },
    },
}
POLICY = "policy: own\nrules:\n  - {id: logins, match: {tools: [login]}, then: hold}\n"
READ_BY_ALL = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/asyncapi.json")


class Story:
    """What happens to the canaries, with everything that was answered to anybody but their receiver."""

    def __init__(self, tenant: Tenant) -> None:
        names = (
            "plain",
            "argument",
            "nested",
            "edited",
            "variable",
            "misfit",
            "malformed",
            "rejected",
            "erased",
        )
        self.tenant = tenant
        self.canary = {name: Canary(name) for name in names}
        self.answers: list[str] = []
        self.pushed: dict[str, list[str]] = {"socket": [], "sse": []}

    def value(self, name: str) -> str:
        return self.canary[name].value

    def heard(self, answer: httpx.Response) -> httpx.Response:
        self.answers.append(answer.text + str(answer.headers))
        return answer

    def held(self, token: str, **more: Any) -> tuple[str, Any]:
        execution_id = self.tenant.execution()
        body = {
            "call_id": "c1",
            "tool": "login",
            "arguments": {"user": self.value("plain"), "token": token, **more},
        }
        answer = self.heard(self.tenant.bot.post(f"/executions/{execution_id}/tool-calls?wait=0", body))
        assert answer.json()["status"] == "held", answer.text
        return execution_id, answer.json()

    def consume(self, execution_id: str) -> dict[str, Any]:
        """The values that the agent's own attempt is handed; they go no further."""
        answer = self.tenant.consume(
            execution_id, self.tenant.call(execution_id)["digest"], attempt_id="mine"
        )
        assert answer.status_code == 200, answer.text
        found = {one["path"]: one["value"] for one in answer.json()["secrets"]}
        done = {"attempt_id": "mine", "outcome": "succeeded", "output": "in"}
        self.heard(self.tenant.bot.post(f"/executions/{execution_id}/tool-calls/c1/result", done))
        return found

    def refusals(self) -> None:
        """Values in proposals that are refused, each with another mistake."""
        path = f"/executions/{self.tenant.execution()}/tool-calls?wait=0"
        misfit = {"tool": "login", "arguments": {"token": self.value("misfit") * 9}}
        assert refused(self.heard(self.tenant.bot.post(path, misfit))) == (422, "invalid_arguments")
        wrong = {"tool": "login", "arguments": {"token": "t"}, "annotations": self.value("misfit")}
        assert refused(self.heard(self.tenant.bot.post(path, wrong))) == (422, "invalid")
        quoted = json.dumps(self.value("malformed"))
        for raw in (
            f'{{"tool":"login","arguments":{{"token":{quoted},}}}}',
            f'{{"tool":"login","arguments":{{"token":{quoted},"token":{quoted}}}}}',
            f'{{"tool":"login","arguments":{quoted}}}',
            f'{{"tool":{quoted},"arguments":{{"token":1e999}}}}',
        ):
            assert self.heard(self.tenant.bot.post(path, raw.encode())).status_code in (400, 422)

    def decide(self, call: Any, decision: str = "approve", **more: Any) -> None:
        answer = self.heard(self.tenant.decide(call, decision, **more))
        assert answer.status_code == 200, answer.text

    def variables(self) -> str:
        """An env_var request, answered and taken."""
        body = {"request_id": fresh("q"), "kind": "env_var", "question": "Key?", "fields": ["API_KEY"]}
        request = self.heard(self.tenant.bot.post("/requests", body)).json()
        hold = f"/holds/{request['hold_id']}/decision"
        wrong = {"decision": "respond", "value": self.value("misfit")}
        assert refused(self.heard(self.tenant.rita.post(hold, wrong))) == (422, "invalid_arguments")
        word = {"decision": "respond", "value": {"API_KEY": self.value("variable")}}
        assert self.heard(self.tenant.rita.post(hold, word)).status_code == 200
        taken = self.tenant.bot.post(f"/requests/{request['request_id']}/secrets", {"attempt_id": "mine"})
        assert taken.json()["secrets"][0]["value"] == self.value("variable")
        return str(request["request_id"])

    def read_everything(self, *executions: str) -> None:
        """What anybody can read by REST."""
        tenant = self.tenant
        for path in READ_BY_ALL:
            # A part may be slow for a moment, and /readyz then says so; what it says is what is looked at here.
            expected = (200, 503) if path == "/readyz" else (200,)
            assert self.heard(tenant.client.get(path)).status_code in expected, path
        lists = (
            "/executions",
            "/holds",
            "/audit",
            "/dead-letters",
            "/tools",
            "/agents",
            "/reviewers",
            "/components",
        )
        for path in lists:
            self.heard(tenant.admin.get(path))
        for execution_id in executions:
            for part in ("", "/events?limit=200", "/tool-calls", "/tool-calls/c1"):
                self.heard(tenant.admin.get(f"/executions/{execution_id}{part}"))
        for hold in tenant.admin.get("/holds").json()["items"]:
            self.heard(tenant.admin.get(f"/holds/{hold['hold_id']}"))


@asynccontextmanager
async def listening(site: Site, story: Story) -> AsyncIterator[None]:
    """A reviewer's WebSocket and an event stream, every byte of which is kept until the last was told."""
    token = story.tenant.rita.token
    headers = {"Authorization": f"Bearer {token}"}
    async with socket(site, token) as ws, httpx.AsyncClient(base_url=site.url, timeout=None) as client:
        await ws.send(json.dumps({"type": "subscribe", "channels": ["holds", "events"]}))

        async def hear() -> None:
            while True:
                story.pushed["socket"].append(json.dumps(await received(ws), ensure_ascii=False))

        async def stream() -> None:
            path = "/v1/events/stream?channels=holds,events"
            async with client.stream("GET", path, headers=headers) as answer:
                async for text in answer.aiter_text():
                    story.pushed["sse"].append(text)

        tasks = [asyncio.create_task(hear()), asyncio.create_task(stream())]
        try:
            await both_received(story, "snapshot")
            yield
            await both_received(story, "SecretsDelivered")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def both_received(story: Story, word: str) -> None:
    """Wait until both doors have said a word."""

    def texts() -> list[str]:
        return ["".join(messages) for messages in story.pushed.values()]

    await asyncio.to_thread(wait_for, texts, lambda found: all(word in text for text in found))


async def happenings(site: Site, story: Story) -> None:
    """Everything that can happen to a sensitive value, and a gateway that is killed in the middle of it."""
    async with listening(site, story):
        first = await asyncio.to_thread(at_the_doors, story)
        await broken_copy(site, story.tenant, first[0])
    last = await asyncio.to_thread(over_a_crash, site, story)
    await asyncio.to_thread(story.read_everything, *first, last)


def at_the_doors(story: Story) -> list[str]:
    """Calls that run, that are edited, rejected, erased and refused, and an answer with a variable."""
    story.refusals()
    ran, call = story.held(story.value("argument"), more={"deep": [story.value("nested")]})
    story.decide(call)
    assert story.consume(ran) == {
        "/token": story.value("argument"),
        "/more": {"deep": [story.value("nested")]},
    }
    edited, call = story.held(story.value("argument"))
    story.decide(call, "edit", edited_arguments={**call["arguments"], "token": story.value("edited")})
    assert story.consume(edited) == {"/token": story.value("edited")}
    rejected, call = story.held(story.value("rejected"))
    story.decide(call, "reject", feedback="no")
    erased, call = story.held(story.value("erased"))
    path = f"/executions/{erased}/tool-calls/c1/secrets/erase"
    assert story.heard(story.tenant.admin.post(path)).json()["erased"] == 1
    request_id = story.variables()
    story.heard(story.tenant.bot.get(f"/requests/{request_id}"))
    return [ran, edited, rejected, erased]


def over_a_crash(site: Site, story: Story) -> str:
    """A call whose gateway is killed while a person decides: what was sealed is there afterwards."""
    execution_id, call = story.held(story.value("argument"))
    old = site.stack.pid("gateway")
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: site.stack.components()["gateway"]["pid"], lambda pid: pid not in (None, old))
    site.stack.wait_ready()
    story.decide(call)
    assert story.consume(execution_id) == {"/token": story.value("argument")}
    return execution_id


async def broken_copy(site: Site, tenant: Tenant, execution_id: str) -> None:
    """Send a command that holds a sealed value once more, cut off: it becomes a dead letter."""
    async with site_log(site) as log:
        tp = log.place(key_of(tenant, execution_id))
        first, stop = await log.log.bounds(tp)
        mine = []
        async for raws in log.log.read(TopicPartition(tp.topic, tp.partition), first, stop):
            mine += [raw for raw in raws if raw.key == key_of(tenant, execution_id)]
        cut = OutRecord(mine[-1].key, mine[-1].value[:-3], mine[-1].headers)
        offset = await log.log.send(tp, cut)
        assert (await dead_letter(log, tp, offset))["ce_id"]


async def test_canaries_planted_in_sensitive_values_are_found_nowhere(site: Site) -> None:
    with new_tenant(site, POLICY, LOGIN) as tenant:
        story = Story(tenant)
        await happenings(site, story)
        finds = Finds(list(story.canary.values()))
        for answer in story.answers:
            finds.look("rest", answer)
        for door, messages in story.pushed.items():
            finds.look(door, "".join(messages))
        async with site_log(site) as log:
            await look_at_topics(finds, log)
        look_at_directory(finds, site.stack.data_dir)
        look_at_processes(finds, [part["pid"] for part in site.stack.components().values() if part["pid"]])

    leaked = {name: finds.of(canary) for name, canary in story.canary.items() if name != "plain"}
    assert not any(leaked.values()), leaked
    expected = {"rest", "socket", "sse", "topic placet.commands", "topic placet.executions", "file kafka"}
    assert expected <= finds.of(story.canary["plain"])
    looked_at = {"file logs", "file vault.db", "file run", "process cmdline", "process environ"}
    assert looked_at <= finds.places.keys()
    assert all(finds.places[place] for place in looked_at)


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.encode(),
        lambda text: json.dumps({"x": text}).encode(),
        lambda text: quote(text).encode(),
        lambda text: text.encode().hex().encode(),
        lambda text: text.encode().hex().upper().encode(),
        lambda text: b64encode(text.encode()),
        lambda text: b64encode(b"1" + text.encode() + b"2"),
        lambda text: b64encode(b"12" + text.encode()),
    ],
)
def test_canary_written_in_any_way_is_found(write: Callable[[str], bytes]) -> None:
    planted, other = Canary("planted"), Canary("other")
    finds = Finds([planted, other])

    finds.look("somewhere", b"\0beside " + write(planted.value) + b" it\n")

    assert finds.of(planted) == {"somewhere"}
    assert finds.of(other) == set()


def test_file_with_holes_is_looked_through(tmp_path: Path) -> None:
    canary = Canary("planted")
    with (tmp_path / "sparse").open("wb") as file:
        file.seek(64 * 1024 * 1024)
        file.write(canary.value.encode())
    finds = Finds([canary])

    look_at_directory(finds, tmp_path)

    assert finds.of(canary) == {"file sparse"}
