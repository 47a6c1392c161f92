"""A tenant of one's own on the running stack, and its real doors: REST, WebSocket, and the log itself."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import websockets

from gateway.identity.issuer import issue
from gateway.identity.keys import load_or_create
from log.kafka.log import KafkaLog
from log.kafka.settings import client_settings
from log.places import TopicPartition
from schemas.actor import Actor
from schemas.envelope import Signer
from schemas.headers import read_event
from schemas.ids import execution_key
from schemas.record import Event, RawRecord, UnreadableRecord
from schemas.topics import Topics, partition_of
from tests.integration.site import PAY, READ, Site

PROJECT = "default"
POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: [send_money]}, then: hold}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""
ANSWER_WITHIN_S = 90.0
# What a writer says of itself, whoever asks for something or not.
OF_THE_LOG = frozenset({"WriterClaimed", "WriterAlive", "DefinitionsAdopted"})


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True)
class Caller:
    """Somebody with a token at the REST door."""

    client: httpx.Client
    token: str

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send one request; `body` is sent as JSON unless it is bytes already."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return self.client.request(method, f"/v1{path}", content=content, headers=headers, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.ask("POST", path, {} if body is None else body, **more)


@dataclass(frozen=True)
class Tenant:
    """A tenant that no other test knows."""

    site: Site
    name: str
    client: httpx.Client

    @property
    def keys_dir(self) -> Path:
        return self.site.stack.data_dir / "keys"

    def token(
        self,
        subject: str,
        *roles: str,
        agent: str | None = None,
        ttl_s: int = 3600,
        project: str = PROJECT,
    ) -> str:
        return issue(self.keys_dir, subject, roles, self.name, project, agent, ttl_s)

    def caller(self, subject: str, *roles: str, agent: str | None = None, project: str = PROJECT) -> Caller:
        return Caller(self.client, self.token(subject, *roles, agent=agent, project=project))

    @cached_property
    def bot(self) -> Caller:
        return self.caller("bot", "agent", agent="bot")

    @cached_property
    def rita(self) -> Caller:
        return self.caller("rita", "reviewer")

    @cached_property
    def otto(self) -> Caller:
        return self.caller("otto", "reviewer")

    @cached_property
    def admin(self) -> Caller:
        """An admin of the whole tenant."""
        return self.caller("ada", "admin", project="*")

    def publish(self, policy: str, *tools: dict[str, Any]) -> None:
        """Publish tools, and a policy of the name `own`."""
        for tool in tools:
            assert self.admin.ask("PUT", f"/tools/{tool['name']}", tool).status_code == 200
        answer = self.admin.ask(
            "PUT", "/policies/own", policy.encode(), headers={"Content-Type": "application/yaml"}
        )
        assert answer.status_code == 200, answer.text

    def execution(self, execution_id: str = "") -> str:
        """A fresh execution of the agent bot."""
        execution_id = execution_id or fresh("run")
        answer = self.bot.post("/executions", {"execution_id": execution_id, "agent": "bot"})
        assert answer.status_code == 201, answer.text
        return execution_id

    def propose(self, execution_id: str, tool: str, arguments: Any, call_id: str = "c1", **more: Any) -> Any:
        """Propose a call and return it as it stands right after its verdict."""
        body = {"call_id": call_id, "tool": tool, "arguments": arguments, **more}
        answer = self.bot.post(f"/executions/{execution_id}/tool-calls?wait=0", body)
        assert answer.status_code in (200, 202), answer.text
        assert answer.json()["status"] != "proposed", "the decider has not answered"
        return answer.json()

    def held(self, tool: str = "send_money", amount: float = 5.0) -> tuple[str, Any]:
        """A call that waits for a person: its execution's id, and the call."""
        execution_id = self.execution()
        call = self.propose(execution_id, tool, {"to": "GB29", "amount": amount})
        assert call["status"] == "held"
        return execution_id, call

    def call(self, execution_id: str, call_id: str = "c1") -> Any:
        return self.bot.get(f"/executions/{execution_id}/tool-calls/{call_id}").json()

    def decide(self, call: Any, decision: str = "approve", by: Caller | None = None, **more: Any) -> Any:
        """Decide a call's hold on the digest that the call shows."""
        body = {"decision": decision, "digest": call["digest"], **more}
        return (by or self.rita).post(f"/holds/{call['hold_id']}/decision", body)

    def consume(self, execution_id: str, digest: str, call_id: str = "c1", attempt_id: str = "") -> Any:
        body = {"digest": digest, "attempt_id": attempt_id or fresh("attempt")}
        return self.bot.post(f"/executions/{execution_id}/tool-calls/{call_id}/consume", body)

    def events(self, execution_id: str) -> list[str]:
        """The types of an execution's events, in order."""
        items = self.admin.get(f"/executions/{execution_id}/events?limit=200").json()["items"]
        return [item["type"] for item in items]


@contextmanager
def new_tenant(site: Site, policy: str = POLICY, *tools: dict[str, Any]) -> Iterator[Tenant]:
    """A tenant with a policy and tools of its own, so that no other test is judged by them."""
    with httpx.Client(base_url=site.url, timeout=ANSWER_WITHIN_S) as client:
        tenant = Tenant(site, fresh("tenant"), client)
        tenant.publish(policy, *(tools or (PAY, READ)))
        yield tenant


def refused(answer: httpx.Response) -> tuple[int, str]:
    """The status and code of a refusal."""
    return answer.status_code, answer.json()["code"]


@asynccontextmanager
async def socket(site: Site, token: str = "", **more: Any) -> AsyncIterator[websockets.ClientConnection]:
    """A WebSocket, authenticated when a token is given."""
    url = more.pop("url", site.url).replace("http://", "ws://") + "/v1/ws"
    async with websockets.connect(url, subprotocols=[websockets.Subprotocol("placet.v1")], **more) as ws:
        if token:
            await ws.send(json.dumps({"type": "authenticate", "token": token}))
            assert (await received(ws))["type"] == "authenticated"
        yield ws


async def received(ws: websockets.ClientConnection) -> dict[str, Any]:
    """The next message."""
    message: dict[str, Any] = json.loads(await asyncio.wait_for(ws.recv(), ANSWER_WITHIN_S))
    return message


async def asked(ws: websockets.ClientConnection, kind: str, **fields: Any) -> dict[str, Any]:
    """Send a message with a fresh `ref`, and return the reply to it."""
    ref = fresh("ref")
    await ws.send(json.dumps({"type": kind, "ref": ref, **fields}))
    while (message := await received(ws)).get("ref") != ref:
        pass
    return message


@dataclass(frozen=True)
class SiteLog:
    """The stack's log, as whoever has raw access to Kafka sees it."""

    log: KafkaLog
    signer: Signer
    partitions: int

    def place(self, key: bytes) -> TopicPartition:
        """Where a key's commands belong."""
        return TopicPartition(self.log.topics.commands, partition_of(key, self.partitions))

    async def ends(self, topic: str) -> dict[TopicPartition, int]:
        """Where every partition of a topic ends now."""
        count = await self.log.partition_count(topic)
        return {tp: (await self.log.bounds(tp))[1] for p in range(count) for tp in [TopicPartition(topic, p)]}

    async def since(self, ends: dict[TopicPartition, int]) -> list[RawRecord]:
        """Every record that came after the given ends."""
        found: list[RawRecord] = []
        for tp, start in ends.items():
            _, stop = await self.log.bounds(tp)
            async for chunk in self.log.read(tp, start, stop):
                found += chunk
        return found


@asynccontextmanager
async def site_log(site: Site) -> AsyncIterator[SiteLog]:
    """The log at the stack's own broker, with its gateway's signing key."""
    config = json.loads((site.stack.data_dir / "placet.json").read_text(encoding="utf-8"))
    key = load_or_create(site.stack.data_dir / "keys").gateway
    owner = client_settings(site.stack.data_dir / "kafka" / "clients" / "installation.json")
    log = KafkaLog(config["bootstrap_servers"], Topics(config["topic_prefix"]), owner)
    try:
        yield SiteLog(log, Signer(key.kid, key.private_key), config["partitions"])
    finally:
        await log.close()


def events_of(raws: list[RawRecord], tenant: str) -> list[Event]:
    """The readable events among records that are about a tenant."""
    found = []
    for raw in raws:
        try:
            event = read_event(raw)
        except UnreadableRecord:
            continue
        if raw.key.startswith(f"{tenant}/".encode()) and event.type not in OF_THE_LOG:
            found.append(event)
    return found


def key_of(tenant: Tenant, execution_id: str) -> bytes:
    return execution_key(tenant.name, PROJECT, execution_id)


def agent_of(tenant: Tenant) -> Actor:
    """The actor that a tenant's agent token stands for."""
    return Actor(subject="bot", tenant=tenant.name, project=PROJECT, roles=("agent",), agent="bot")


async def dead_letter(log: SiteLog, tp: TopicPartition, offset: int) -> dict[str, bytes]:
    """The headers of the letter about one record of a commands topic, once it is written."""
    topic = log.log.topics.dead_letters
    target = TopicPartition(topic, tp.partition % await log.log.partition_count(topic))
    wanted = f"{tp}/{offset}".encode()
    first, _ = await log.log.bounds(target)
    async with (
        asyncio.timeout(ANSWER_WITHIN_S),
        aclosing(log.log.tail(topic, {target.partition: first})) as tail,
    ):
        async for _, raws in tail:
            for raw in raws:
                headers = dict(raw.headers)
                if headers["ce_id"] == wanted:
                    return headers
    raise AssertionError("the tail of the dead letters ended")
