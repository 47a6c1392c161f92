"""A log in memory that remembers what a live state was told, and readers that come back to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.live.live import Live
from gateway.problems import Problem
from gateway.pushes.catching_up import CatchUps
from gateway.pushes.hub import Hub
from gateway.pushes.resyncs import Resync
from log.places import Bounds
from projections.queries.history import ExecutionState, WantedRows, fold_all
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.events.log import WriterClaimed
from schemas.headers import event_record
from schemas.message import Message
from schemas.record import Event, EventMeta, RawRecord
from schemas.refusals import Refusal
from tests.gateway.facts import AT_MS, LANES, Partition

ANNA = Actor(subject="anna", tenant="acme", project="books", roles=("reviewer",))


@dataclass(eq=False)
class Returner:
    """A reader that keeps what it is given, with as much room as a test says."""

    actor: Actor = ANNA
    channels: set[str] = field(default_factory=set)
    behind: str | None = None
    catching: set[str] = field(default_factory=set)
    messages: list[dict[str, Any]] = field(default_factory=list)
    resyncs: int = 0
    reasons: list[Resync] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    has_room: bool = True
    is_closed: bool = False

    async def drained(self) -> None:
        while not self.has_room:
            await asyncio.sleep(0)

    def push(self, message: bytes) -> None:
        self.messages.append(orjson.loads(message))

    def give_up(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.catching.clear()

    def hide(self, hold: HoldRow) -> None: ...

    def resync(self, reason: Resync) -> None:
        self.resyncs += 1
        self.reasons.append(reason)
        self.catching.clear()


@dataclass
class Remembered:
    """Every record of every lane: what Kafka would have. `deleted` are the first offsets that are still there."""

    live: Live
    lanes: list[list[RawRecord]] = field(default_factory=lambda: [[] for _ in range(LANES)])
    facts: list[Event] = field(default_factory=list)
    deleted: int = 0
    chunk: int = 3
    readings: int = 0
    wanted: list[WantedRows] = field(default_factory=list)
    is_unavailable: bool = False
    are_views_behind: bool = False
    asked_in_vain: int = 0

    def __post_init__(self) -> None:
        for partition in range(LANES - 1):
            claim = WriterClaimed(claim_id="c", after=-1, worker="w")
            meta = EventMeta(f"claim-{partition}", AT_MS, -1, 0, "", "", "")
            self._append(Event(claim, meta, f"_log/{partition}".encode(), partition, 0))

    def write(
        self, partition: Partition, key: bytes, command_id: str, *bodies: Message, digest: str = "body"
    ) -> None:
        """Record a command's events, and let the tail deliver them."""
        events = partition.events(key, command_id, bodies, digest)
        for event in events:
            self._append(event)
        self.live.take(partition.partition + 1, events, events[-1].offset + 1)

    def zombie(self, partition: Partition, key: bytes, *bodies: Message) -> None:
        """Records of a writer without the claim in force: the log has them, and they count for nobody."""
        for event in partition.events(key, "zombie", bodies):
            self._append(event._replace(meta=event.meta._replace(term=99)))

    async def bounds(self, lanes: Sequence[int]) -> dict[int, Bounds]:
        await asyncio.sleep(0)
        return {lane: Bounds(self.deleted, len(self.lanes[lane])) for lane in lanes}

    async def read(self, places: Mapping[int, int]) -> AsyncGenerator[tuple[int, list[RawRecord]]]:
        self.readings += 1
        places = dict(places)
        while True:
            await asyncio.sleep(0)
            for lane, place in places.items():
                raws = self.lanes[lane][place : place + self.chunk]
                places[lane] += len(raws)
                if raws:
                    yield lane, raws

    async def state_before(
        self, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        await asyncio.sleep(0)
        if self.is_unavailable:
            self.asked_in_vain += 1
            raise Problem(Refusal.UNAVAILABLE, "no database")
        if self.are_views_behind:
            self.asked_in_vain += 1
            return None
        earlier = [
            fact
            for fact in self.facts
            if fact.key == key and fact.partition == partition and fact.offset < offset
        ]
        self.wanted.append(wanted)
        state = fold_all(earlier)
        calls = {*wanted.calls, *(state.holds[one]["call_id"] for one in wanted.holds if one in state.holds)}
        return ExecutionState(
            state.execution,
            {name: row for name, row in state.calls.items() if name in calls},
            {name: row for name, row in state.holds.items() if name in wanted.holds},
            {
                name: row
                for name, row in state.turns.items()
                if name in wanted.turns or row["ended_at_ms"] is None
            },
        )

    def _append(self, event: Event) -> None:
        out = event_record(event.body, event.meta, event.key)
        lane = self.lanes[event.partition + 1]
        assert event.offset == len(lane)
        lane.append(RawRecord(event.partition, event.offset, AT_MS, event.key, out.value, out.headers))
        if not event.key.startswith(b"_log/") and event.meta.term == 0:
            self.facts.append(event)


def catch_ups(remembered: Remembered, hub: Hub) -> CatchUps:
    return CatchUps(remembered.live, hub, remembered, remembered.state_before)
