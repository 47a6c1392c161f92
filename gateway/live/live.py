"""The state of one gateway, folded from the log: fed by the tail, in order, and always exactly at its position.

When the tail has read a part of a lane, for each command's events in this order:
1. they are folded into the rows;
2. the position moves past them, and they are added to the ring;
3. they are sent to the sockets;
4. the watchers of a call or hold are notified;
and then, when the whole part is folded,
5. each waiter for one of the commands gets its answer: the state after everything that was read, with one cursor.
So an answer's cursor never covers a message that its socket was not sent before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.live.cache import Cache
from gateway.live.cursor import CursorKey, Position, Vector, mark_of
from gateway.live.definitions import LiveDefinitions
from gateway.live.facts import Fact, Group
from gateway.live.log_time import LogTime
from gateway.live.ring import Ring
from gateway.live.waiters import Waiters
from gateway.live.watch import Watch
from gateway.shares.work import Owner, processor_s
from schemas.events.log import DefinitionsAdopted, WriterAlive
from schemas.events.rules import RuleAsked
from schemas.ids import LOG_KEYS, split_execution_key, split_rule_uses_key
from schemas.record import Event

DEFINITIONS_LANE = 0
STARTING_MAX = 10_000
Publish = Callable[[Group, "Live"], None]
Took = Callable[[Owner, float], None]


def lane_of(partition: int) -> int:
    """Return the lane of a partition of the executions."""
    return partition + 1


@dataclass(slots=True)
class Live:
    """The live state of one gateway.

    `read_through` is, per lane, the first offset not read; `adopted` is, per partition of the executions, the offset
    of the definitions that it is known to have adopted. `decided` is, per such partition, the last command known to
    be dealt with. `time` is the log's. `starting` are executions that this gateway was recently requested to open,
    with their agents: a client need not wait for the answer before it uses them. `took` is called with the requester
    of a hold and the time for which each of its events kept the loop, since all of a hold is examined when it opens.
    """

    position: Position
    ring: Ring
    publish: Publish
    read_through: list[int]
    adopted: list[int]
    cache: Cache = field(default_factory=Cache)
    time: LogTime = field(default_factory=LogTime)
    definitions: LiveDefinitions = field(default_factory=LiveDefinitions)
    waiters: Waiters = field(default_factory=Waiters)
    watch: Watch = field(default_factory=Watch)
    starting: dict[bytes, str] = field(default_factory=dict)
    decided: dict[int, int] = field(default_factory=dict)
    took: Took = lambda owner, seconds: None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def at(cls, key: CursorKey, publish: Publish, starts: Sequence[tuple[int, str]]) -> Live:
        """Return a live state that begins at given positions.

        Args:
            key: writes its cursors.
            publish: sends a group's messages to the sockets.
            starts: per lane, the first offset that the tail will deliver and the id of the record before it.
        """
        position = Position.at_start(key)
        for lane, (offset, record_id) in enumerate(starts):
            if record_id:
                position.advance(lane, offset - 1, mark_of(record_id))
        ring = Ring(list(position.offsets), list(position.marks))
        return cls(position, ring, publish, [offset for offset, _ in starts], [-1] * (key.lanes - 1))

    def take(self, lane: int, events: Sequence[Event], next_offset: int) -> None:
        """Take in what the tail has read of a lane: the events that count, and the offset that it has reached."""
        groups = groups_of(lane, events)
        for group in groups:
            self._take(group)
        for group in groups:
            self.waiters.take(group)
        self.read_through[lane] = next_offset
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds that can become true only when the tail moves; False after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not done():
                    await self._moved.wait()
        except TimeoutError:
            return done()
        return True

    async def reached(self, vector: Vector, timeout_s: float) -> bool:
        """Wait until everything up to a vector was taken in; False after `timeout_s`."""
        return await self.until(lambda: self.position.reached(vector), timeout_s)

    def note_start(self, key: bytes, agent: str) -> None:
        """Note that an execution is being opened; the oldest such notes are dropped."""
        self.starting[key] = agent
        if len(self.starting) > STARTING_MAX:
            del self.starting[next(iter(self.starting))]

    def missing_adoptions(self, offset: int) -> list[int]:
        """Return the partitions that are not known to have adopted the definitions up to an offset."""
        return [partition for partition, through in enumerate(self.adopted) if through < offset]

    def _take(self, group: Group) -> None:
        if group.lane == DEFINITIONS_LANE:
            for fact in group.facts:
                self.definitions.apply(fact.event)
        else:
            self._note_decided(group)
            if not group.key.startswith(LOG_KEYS) and split_rule_uses_key(group.key) is None:
                self._fold(group)
        self.position.advance(group.lane, group.last_offset, group.mark)
        self.ring.add(group)
        self.publish(group, self)
        for fact in group.facts:
            self.watch.tell(fact)

    def _note_decided(self, group: Group) -> None:
        """Note the last command that a partition has decided, and which definitions it has adopted."""
        partition = group.facts[0].event.partition
        through = self.decided.get(partition, -1)
        for fact in group.facts:
            body = fact.event.body
            if isinstance(body, WriterAlive):
                through = max(through, body.commands_through)
            else:
                through = max(through, fact.event.meta.command_offset)
                if isinstance(body, DefinitionsAdopted):
                    self.adopted[partition] = max(self.adopted[partition], body.through_offset)
        self.decided[partition] = through

    def _fold(self, group: Group) -> None:
        rows = self.cache.folding(group.key)
        for fact in group.facts:
            body = fact.event.body
            if "hold_id" in body.__dict__:
                started = processor_s()
                rows.apply(fact)
                if fact.hold is not None:
                    self.took((fact.event.meta.tenant, fact.hold["requester"]), processor_s() - started)
            else:
                rows.apply(fact)
            if isinstance(body, RuleAsked):
                tenant, project, _ = split_execution_key(group.key)
                self.definitions.note_asked(tenant, project, body.rule_id)
        rows.keep()


def groups_of(lane: int, events: Sequence[Event]) -> list[Group]:
    """Group adjacent events that share command, body and key."""
    groups: list[Group] = []
    name: tuple[str, str, bytes] | None = None
    for event in events:
        meta = event.meta
        if (meta.command_id, meta.command_digest, event.key) != name:
            name = (meta.command_id, meta.command_digest, event.key)
            groups.append(Group(lane, event.key, meta.command_id, meta.command_digest))
        groups[-1].facts.append(Fact(event))
    for group in groups:
        group.mark = mark_of(group.facts[-1].event.meta.event_id)
    return groups
