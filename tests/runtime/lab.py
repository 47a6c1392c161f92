"""A laboratory for writers: a log, signed commands, workers to start and stop, and the facts read back."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.key_files import DECIDERS
from host.public_keys import PublicKeyFile
from log.places import TopicPartition
from log.port import Log
from schemas.actor import Actor
from schemas.commands import PublishPolicy, PublishTool
from schemas.envelope import Draft, Signer, Verifier
from schemas.event_signatures import EventSigner, LogSignatures, event_signer_of
from schemas.headers import read_event
from schemas.ids import definition_key, derived_id, execution_key
from schemas.message import Message
from schemas.record import Event, OutRecord, UnreadableRecord
from schemas.term import rule_of
from schemas.topics import partition_of
from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.runtime.assembly import Assembly
from services.runtime.definitions_book import DefinitionsBook
from services.runtime.offloading import Offload, in_place
from services.runtime.trial import Trial
from services.runtime.worker import Worker

TENANT, PROJECT = "acme", "main"
AGENT = Actor(subject="bot", tenant=TENANT, project=PROJECT, roles=("agent",), agent="bot")
OLGA = Actor(subject="olga", tenant=TENANT, project=PROJECT, roles=("operator", "reviewer"))
RITA = Actor(subject="rita", tenant=TENANT, project=PROJECT, roles=("reviewer",))
DEADLINE_S = 60.0

PAYMENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"amount": {"type": "number", "maximum": 1000}, "recipient": {"type": "string"}},
    "required": ["amount"],
}
POLICY: dict[str, Any] = {
    "policy": "lab",
    "scope": {"tenant": "*"},
    "rules": [
        {"id": "reads", "match": {"tools": ["read_*"]}, "then": "allow"},
        {"id": "bans", "match": {"tools": ["drop_*"]}, "then": "deny"},
        {
            "id": "payments",
            "match": {"tools": ["send_*"]},
            "then": "hold",
            "hold": {"kind": "permission", "timeout_seconds": 600},
        },
    ],
}
# Publishes for the whole tenant.
TENANTS_OLGA = OLGA.model_copy(update={"project": "*"})


@dataclass
class Running:
    """A worker with the tasks that keep it running."""

    worker: Worker
    tasks: list["asyncio.Task[None]"]

    async def stop(self) -> None:
        self.worker.stop()
        await self.tasks[0]
        await self._cancel()

    async def kill(self) -> None:
        """Stop at once, wherever it is: nothing is finished, nothing said."""
        await self._cancel()

    async def _cancel(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@dataclass
class Lab:
    """One log with everything that is needed to ask it something.

    Its deciders sign once they have a `event_signer`, and believe what is signed alone once they have `signatures`.
    """

    log: Log
    partitions: int
    rng: random.Random
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    decider_key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    local_ms: Any = None
    event_signer: EventSigner | None = None
    signatures: LogSignatures | None = None
    offload: Offload = in_place
    agent: Actor = AGENT
    olga: Actor = OLGA
    rita: Actor = RITA
    workers: list[Running] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)

    @property
    def signer(self) -> Signer:
        return Signer("gateway-1", self.key)

    def sign(self, keys_dir: Path, since: dict[str, tuple[int, ...]] | None = None) -> None:
        """From now on signatures are owed, on each topic from these offsets on."""
        self.event_signer = event_signer_of({"keys_dir": str(keys_dir)})
        self.signatures = LogSignatures(PublicKeyFile(keys_dir / DECIDERS), since or {})

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord], base: int | None = None) -> int:
        """Write facts as a decider does that believes to know where the log ends; the first one's offset.

        Args:
            tp: of events.
            records: unsigned.
            base: the place that they are signed for, where signatures are owed; None: where the log ends now.
        """
        if self.event_signer is not None:
            end = (await self.log.bounds(tp))[1] if base is None else base
            records = self.event_signer.sign(*tp, end, records)
        return await (await self.log.appender()).append(tp, records)

    def verifier(self) -> Verifier:
        keys = {"gateway-1": self.key.public_key()}

        def no_tokens(text: str, at_ms: int) -> Actor:
            raise ValueError("no issuer is known here")

        return Verifier(keys.get, no_tokens, {"decider-1": self.decider_key.public_key()}.get)

    async def start_worker(
        self, name: str, log: Log | None = None, trial: Trial | None = None, **changes: Any
    ) -> Running:
        log = log or self.log
        empty = Definitions(policies=PolicySet())
        book = DefinitionsBook(log, empty, signatures=self.signatures, offload=self.offload)
        await book.load()
        # A log in memory stamps by a clock of its own: whoever is not told otherwise has the same.
        local_ms = self.local_ms or getattr(log, "_now_ms", None)
        clock = {} if local_ms is None else {"local_ms": local_ms}
        assembly = Assembly(
            log=log,
            verifier=self.verifier(),
            book=book,
            empty=empty,
            worker_id=name,
            partitions=self.partitions,
            fresh_id=lambda: derived_id(name, self.rng.random()),
            signer=Signer("decider-1", self.decider_key, b"/placet/decider"),
            event_signer=self.event_signer,
            signatures=self.signatures,
            trial=trial,
            **clock,
        )
        worker = Worker(log, name, assembly.build, self.rng.random)
        for field_name, value in changes.items():
            setattr(worker, field_name, value)
        book.listeners.add(worker.wake)
        tasks = [asyncio.create_task(worker.run()), asyncio.create_task(book.follow())]
        running = Running(worker, tasks)
        self.workers.append(running)
        return running

    async def close(self) -> None:
        for running in self.workers:
            await running.kill()

    def key_of(self, execution_id: str) -> bytes:
        return execution_key(TENANT, PROJECT, execution_id)

    def partition_of(self, execution_id: str) -> int:
        return partition_of(self.key_of(execution_id), self.partitions)

    def execution_on(self, partition: int) -> str:
        """An execution id whose key falls on a partition."""
        return next(f"x{i}" for i in range(10_000) if self.partition_of(f"x{i}") == partition)

    def commands_tp(self, execution_id: str) -> TopicPartition:
        return TopicPartition(self.log.topics.commands, self.partition_of(execution_id))

    def events_tp(self, execution_id: str) -> TopicPartition:
        return TopicPartition(self.log.topics.executions, self.partition_of(execution_id))

    def record(
        self, execution_id: str, body: Message, actor: Actor = AGENT, command_id: str | None = None
    ) -> OutRecord:
        self.sent[type(body).__name__] += 1
        name = command_id or derived_id(execution_id, type(body).__name__, sum(self.sent.values()))
        return self.signer.sign([Draft(body, actor, name, self.key_of(execution_id))])[0]

    async def send(
        self, execution_id: str, body: Message, actor: Actor = AGENT, command_id: str | None = None
    ) -> str:
        """Send a command without waiting for its trace; its id."""
        record = self.record(execution_id, body, actor, command_id)
        await self.log.send(self.commands_tp(execution_id), record)
        return dict(record.headers)["ce_id"].decode()

    async def ask(
        self, execution_id: str, body: Message, actor: Actor = AGENT, command_id: str | None = None
    ) -> list[Event]:
        """Send a command and wait for its trace."""
        name = await self.send(execution_id, body, actor, command_id)
        return await self.trace(execution_id, name)

    async def trace(self, execution_id: str, command_id: str) -> list[Event]:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                facts = await self.facts(self.events_tp(execution_id))
                if found := [event for event in facts if event.meta.command_id == command_id]:
                    return found
                await asyncio.sleep(0.01)

    async def publish_policy(self, document: dict[str, Any] | None = None) -> None:
        document = document or POLICY
        await self._publish(
            PublishPolicy(name=document["policy"], document=json.dumps(document)),
            "policy",
            document["policy"],
        )

    async def publish_basics(self) -> None:
        """The lab's policy and two tools: one to read, one that pays."""
        await self.publish_tool({"name": "read_file", "annotations": {"readOnlyHint": True}})
        await self.publish_tool({"name": "send_money", "inputSchema": PAYMENT_SCHEMA})
        await self.publish_policy()

    async def publish_tool(self, definition: dict[str, Any]) -> None:
        await self._publish(
            PublishTool(name=definition["name"], definition=json.dumps(definition)),
            "tool",
            definition["name"],
        )

    async def _publish(self, body: Message, kind: str, name: str) -> None:
        """Publish, and wait until every partition has adopted it."""
        command_id = derived_id("publish", name, self.rng.random())
        record = self.signer.sign(
            [Draft(body, TENANTS_OLGA, command_id, definition_key(TENANT, kind, name))]
        )[0]
        await self.log.send(TopicPartition(self.log.topics.definition_commands, 0), record)
        definitions = TopicPartition(self.log.topics.definitions, 0)
        offset = -1
        async with asyncio.timeout(DEADLINE_S):
            while offset < 0:
                found = [e for e in await self.facts(definitions) if e.meta.command_id == command_id]
                if found:
                    assert found[0].type in ("PolicyPublished", "ToolPublished"), found[0].body
                    offset = found[0].offset
                await asyncio.sleep(0.01)
        await self.adopted(offset)

    async def adopted(self, offset: int) -> None:
        """Wait until every partition has adopted the definitions up to an offset."""
        async with asyncio.timeout(DEADLINE_S):
            for partition in range(self.partitions):
                while await self._adopted(partition) < offset:
                    await asyncio.sleep(0.01)

    async def _adopted(self, partition: int) -> int:
        facts = await self.facts(TopicPartition(self.log.topics.executions, partition))
        offsets = [getattr(e.body, "through_offset", -1) for e in facts if e.type == "DefinitionsAdopted"]
        return max(offsets, default=-1)

    async def facts(self, tp: TopicPartition) -> list[Event]:
        """The accepted events of a partition, in order, by the term rule."""
        rule = rule_of(self.signatures, tp.topic)
        return [event for event, raw in await self.records(tp) if rule.admits(event, raw)]

    async def every_event(self, tp: TopicPartition) -> list[Event]:
        """All readable events of a partition, zombies' as well."""
        return [event for event, _ in await self.records(tp)]

    async def records(self, tp: TopicPartition) -> list[tuple[Event, Any]]:
        """All readable events of a partition, each with its record."""
        found = []
        for raw in await self.raws(tp):
            try:
                found.append((read_event(raw), raw))
            except UnreadableRecord:
                continue
        return found

    async def raws(self, tp: TopicPartition) -> list[Any]:
        first, end = await self.log.bounds(tp)
        found: list[Any] = []
        async with aclosing(self.log.read(tp, first, end)) as chunks:
            async for chunk in chunks:
                found.extend(chunk)
        return found


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def body_of(events: list[Event], name: str) -> Any:
    """The one body of a type."""
    (found,) = [event.body for event in events if event.type == name]
    return found


def said(event: Event) -> Any:
    """The body of an event, whatever its type."""
    return event.body
