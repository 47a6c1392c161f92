"""A gateway: sends signed commands, tails the facts under the term rule, and tells waiting clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from log.errors import LogUnreachable
from log.places import TopicPartition
from schemas.actor import Actor
from schemas.envelope import Draft, Signer, command_digest
from schemas.headers import read_event
from schemas.ids import split_execution_key
from schemas.message import Message
from schemas.record import Event, OutRecord, UnreadableRecord
from schemas.term import TermRule
from schemas.topics import partition_of
from tests.simulation.history import History
from tests.simulation.process import ProcessLog
from tests.simulation.turns_seen import ConversationSeen

RETRY_S = 4.0
TRIES = 6


@dataclass
class Seen:
    """The newest that was seen of a call: its last event of each type, and the holds on it."""

    events: dict[str, Event] = field(default_factory=dict)
    last: str = ""


@dataclass
class Gateway:
    """One gateway with its own tail.

    Attributes:
        name: of this gateway.
        reached: the log as this gateway's process reaches it.
        signer: signs what it forwards.
        partitions: the count of the executions topic.
        history: takes what its clients asked and were told.
    """

    name: str
    reached: ProcessLog
    signer: Signer
    partitions: int
    history: History
    counted: list[tuple[int, int]] = field(default_factory=list)
    calls: dict[tuple[bytes, str], Seen] = field(default_factory=dict)
    holds: dict[str, Event] = field(default_factory=dict)
    # Only those that were named before they began.
    conversations: dict[bytes, ConversationSeen] = field(default_factory=dict)
    old_digests: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    _traces: dict[tuple[bytes, str, str], list[Event]] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    # Partition → next offset and the claim in force there: what a gateway keeps with its cursor.
    _places: dict[int, tuple[int, int]] = field(default_factory=dict)

    async def follow(self) -> None:
        """Tail for ever; after a lost connection go on from where it was, with the claim that was in force."""
        topic = self.reached.topics.executions
        while True:
            starts = {p: self._places.get(p, (0, -1)) for p in range(self.partitions)}
            rules = {p: TermRule(claim) for p, (_, claim) in starts.items()}
            offsets = {p: offset for p, (offset, _) in starts.items()}
            try:
                async with aclosing(self.reached.tail(topic, offsets)) as chunks:
                    async for partition, raws in chunks:
                        for raw in raws:
                            self._take(rules[partition], raw)
                        self._places[partition] = (raws[-1].offset + 1, rules[partition].claim)
                        self._tell()
                        if self.reached.faults.hit("unreachable"):
                            break
            except LogUnreachable:
                await asyncio.sleep(self.reached.faults.rng.uniform(0.1, 1.0))

    async def ask(
        self, client: str, key: bytes, body: Message, actor: Actor, command_id: str, **noted: Any
    ) -> list[Event]:
        """Send a command until the trace of its body is seen; the same command id each time.

        Empty when nobody answered.
        """
        op = _OPS.get(type(body).__name__, type(body).__name__)
        record = self.signer.sign([Draft(body, actor, command_id, key)])[0]
        name = (key, command_id, command_digest(record.value))
        where = {**self.where(key), "command_digest": name[2]}
        self.history.add(client, op, command_id=command_id, **where, **noted)
        for _ in range(TRIES):
            await self._send(
                TopicPartition(self.reached.topics.commands, partition_of(key, self.partitions)), record
            )
            if await self.until(lambda: name in self._traces, RETRY_S):
                break
        trace = self._traces.get(name, [])
        if trace:
            # Acknowledged is what every event of the first answer says.
            events = [event.meta.event_id for event in trace]
            said = [getattr(e.body, "code", e.type) for e in trace]
            self.history.add(client, "ack", command_id=command_id, events=events, outcome=said, **where)
        else:
            self.history.add(client, "unanswered", command_id=command_id, **where)
        return trace

    async def forward(self, key: bytes, record: OutRecord) -> None:
        """Send a record as it is, once."""
        tp = TopicPartition(self.reached.topics.commands, partition_of(key, self.partitions))
        await self._send(tp, record)

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition on what was seen holds; whether it does."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def seen(self, key: bytes, call_id: str) -> Seen:
        """What was seen of a call."""
        return self.calls.setdefault((key, call_id), Seen())

    def where(self, key: bytes) -> dict[str, str]:
        tenant, project, execution_id = split_execution_key(key)
        return {"tenant": tenant, "project": project, "execution_id": execution_id}

    async def _send(self, tp: TopicPartition, record: OutRecord) -> None:
        try:
            await self.reached.send(tp, record)
        except LogUnreachable:
            await asyncio.sleep(0.2)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _take(self, rule: TermRule, raw: Any) -> None:
        try:
            event = read_event(raw)
        except UnreadableRecord:
            return
        if not rule.admits(event):
            return
        self.counted.append((raw.partition, raw.offset))
        name = (event.key, event.meta.command_id, event.meta.command_digest)
        self._traces.setdefault(name, []).append(event)
        body: Any = event.body
        if call_id := getattr(body, "call_id", ""):
            seen = self.seen(event.key, call_id)
            seen.events[event.type] = event
            seen.last = event.type
        if event.type == "RuleAsked":
            self.rules.append(body.rule_id)
        if (conversation := self.conversations.get(event.key)) is not None:
            conversation.take(event)
        self._take_hold(event, body)

    def _take_hold(self, event: Event, body: Any) -> None:
        if event.type == "HoldOpened":
            self.holds[body.hold_id] = event
            self.old_digests.append(body.digest)
        elif event.type in ("HoldExpired", "HoldCancelled") or getattr(body, "resolves", False):
            self.holds.pop(body.hold_id, None)


_OPS = {
    "StartExecution": "start",
    "ProposeToolCall": "propose",
    "DecideHold": "decide",
    "ConsumeGrant": "consume",
    "ReportResult": "report",
}
