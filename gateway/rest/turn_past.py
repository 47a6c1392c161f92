"""What has happened in a turn so far, as the events of its chat.

For a reader that comes without a cursor, or comes back after the turn has ended. The events are made of the views'
history, in the order and with the content that they had when they were new. Their cursors name the same place in the
log of the conversation, and for other partitions, of which a chat shows nothing, the present.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import ExitStack, aclosing, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

from gateway.live.cache import key_of
from gateway.live.cursor import ALL_GIVEN, NONE, Position, Vector
from gateway.live.facts import Fact, Group
from gateway.live.live import groups_of, lane_of
from gateway.pushes.messages import Push, pushes_of
from gateway.pushes.past_rows import PastRows
from gateway.rest.history import fold_execution, read_execution
from gateway.rest.request_context import RequestContext
from gateway.shares.budget import Holding
from gateway.shares.work import owner_of
from gateway.sockets.chat import ChatEvents
from projections.queries import history
from projections.queries.history import ExecutionState, Until, WantedRows
from projections.queries.moment import Moment, size_of
from projections.tables.conversations import TurnRow
from schemas.events.conversations import MessageSent, TurnClaimed
from schemas.record import Event
from schemas.topics import partition_of

# So much of the log is read at once, and the rest of the command that is read then.
PAGE_BYTES = 256 * 1024


class Place(NamedTuple):
    """A reader's place in the log of a conversation: after `given` messages of the command that ends at `offset`."""

    offset: int
    given: int


async def past_of(
    context: RequestContext,
    turn: TurnRow,
    shown: ChatEvents,
    after: Vector | None,
    known: int,
    taken: ExitStack,
) -> AsyncGenerator[bytes, None] | None:
    """Have a stream show a turn, and return the events that it begins with.

    Args:
        context: of the request.
        turn: the turn as it is now.
        shown: what the stream shows.
        after: the position from which the reader comes back; None if it comes anew.
        known: the last offset of the conversation that this gateway had read once the reader was subscribed.
        taken: what the stream gives back where it ends, even if it was never begun.

    Returns:
        The events; None if there are none, or the reader is sent them as it catches up.

    Raises:
        Problem: 503, the views are needed, and are behind for too long or cannot be read.
    """
    is_over, has_begun = turn["ended_at_ms"] is not None, turn["claims"] > 0
    past = TurnPast(context, turn, shown, after)
    taken.callback(past.taken.close)
    # A turn that was opened after the reader had subscribed is still to come, whatever has become of it meanwhile.
    is_past = is_over or (after is None and has_begun and turn["log_offset"] <= known)
    # A place after its message can still be from before its claim: what else happened then is not the turn's.
    is_ours = not is_past and has_begun and await past.begins_claimed()
    shown.follow(turn["turn_id"], is_ours=is_ours)
    return past.events() if is_past else None


async def begun(events: AsyncGenerator[bytes, None] | None) -> AsyncGenerator[bytes, None] | None:
    """Wait for the first of some events, so that a refusal is still an answer of its own; None if there are none."""
    first = None if events is None else await anext(events, None)
    if events is None or first is None:
        return None
    return _chained(first, events)


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


@dataclass(slots=True)
class TurnPast:
    """The past of one turn, for one reader.

    `after` is the position from which the reader comes back, and `place` where that is in the log of the
    conversation: what is before it is left out. `through` is the last offset that counts as past; it ends a command.
    What is after it reaches the reader as it happens. `taken` is what it has of its subject's limits, given back
    with the last event, or where the stream ends before it.
    """

    context: RequestContext
    turn: TurnRow
    shown: ChatEvents
    after: Vector | None
    taken: ExitStack = field(default_factory=ExitStack)
    place: Place = field(init=False)
    lane: int = field(init=False)
    through: int = field(init=False)
    _position: Position = field(init=False)
    _rows: PastRows = field(init=False)

    def __post_init__(self) -> None:
        gate, key = self.context.gate, key_of(self.turn)
        self._rows = PastRows(self._state_before)
        self.lane = lane_of(partition_of(key, gate.partitions))
        self.through = gate.live.ring.last_offset_of(key, self.lane)
        self.place = Place(NONE, ALL_GIVEN)
        if (after := self.after) is not None:
            given = after.given if after.lane == self.lane else ALL_GIVEN
            self.place = Place(after.offsets[self.lane], given)
        position = gate.live.position
        self._position = Position.at(position.key, Vector(tuple(position.offsets), tuple(position.marks)))

    async def begins_claimed(self) -> bool:
        """Return True if a worker had taken the turn on by the reader's place.

        Ids are the same on every stream of a conversation: one of the whole conversation can be from between the
        turn's message and its claim. Memory mostly has all that came after the place; else the views have what came
        before it.

        Raises:
            Problem: 503, the views are behind for too long, or cannot be read.
        """
        if self.place.offset < self.turn["log_offset"]:
            return False
        if (is_claimed := self._claimed_by_memory()) is not None:
            return is_claimed
        offset, end = self.turn["log_offset"], min(self.place.offset, self.through)
        while offset < end:
            self.context.views_wait.renew()
            # Mostly the claim is on the first of these pages: little but earlier turns comes between.
            groups, offset = await read_execution(
                self.context, self.turn["execution_id"], partial(self._read, after=offset)
            )
            if (claim := self._first_claim(groups)) is not None:
                return claim.event.offset <= self.place.offset
        return False

    def _claimed_by_memory(self) -> bool | None:
        """As `begins_claimed`; None if memory does not tell."""
        ring, after = self.context.gate.live.ring, self.after
        if after is None or not ring.connects(self.lane, self.place.offset, after.marks[self.lane]):
            return None
        key, since = key_of(self.turn), ring.since(after._replace(given=ALL_GIVEN))
        claim = self._first_claim(group for group, _ in since if group.key == key)
        if claim is None:
            return True
        return None if claim.turn is None else claim.turn["claims"] > 1

    def _first_claim(self, groups: Iterable[Group]) -> Fact | None:
        """Return the first claim of the turn, by any attempt; None if there is none."""
        for fact in chain.from_iterable(group.facts for group in groups):
            if isinstance(fact.event.body, TurnClaimed) and fact.event.body.turn_id == self.turn["turn_id"]:
                return fact
        return None

    def has(self, cursor: str) -> bool:
        """Return True if the message with a cursor is part of this past."""
        return self._position.key.read(cursor).offsets[self.lane] <= self.through

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the events, until the turn ends or the past does.

        What is in memory for them counts among the bytes that wait for the subject.

        Raises:
            Problem: 429 quota, too many of the subject's streams are sent their past, or too much waits for it; 503,
                the views are behind for too long, or cannot be read.
        """
        gateway, actor = self.context.gateway, self.context.actor
        offset = self.turn["log_offset"] - 1
        with self.taken as taken:
            taken.enter_context(gateway.past_limit.open(actor))
            held = taken.enter_context(gateway.budget.holding(owner_of(actor)))
            while offset < self.through and not self.shown.is_over:
                self.context.views_wait.renew()
                # A query is repeated until the views have read far enough: it changes nothing here.
                groups, offset = await read_execution(
                    self.context, self.turn["execution_id"], partial(self._read, after=offset)
                )
                size = sum(group.size_bytes() for group in groups)
                while groups and not self.shown.is_over:
                    group = groups.popleft()
                    await self._rows.fill(group)
                    async with aclosing(self._events_of(group, held, size + self._rows.size)) as events:
                        async for event in events:
                            yield event
                    size -= group.size_bytes()
        self.shown.pass_over(self.has)

    async def _state_before(self, group: Group, wanted: WantedRows) -> ExecutionState:
        until = Until(offset=group.first_offset - 1)
        self.context.views_wait.renew()
        return await fold_execution(self.context, self.turn["execution_id"], until, wanted)

    def _read(self, moment: Moment, after: int) -> tuple[deque[Group], int]:
        """Return the next commands, at least one if there is one, and the offset through which they are."""
        turn, found, size, last = self.turn, list[Event](), 0, ""
        owner, until = (turn["tenant"], turn["project"], turn["execution_id"]), Until(offset=self.through)
        with closing(history.each_event(moment, *owner, after_offset=after, until=until)) as rows:
            for row in rows:
                name = f"{row['command_id']} {row['command_digest']}"
                if size >= PAGE_BYTES and name != last:
                    return deque(groups_of(self.lane, found)), found[-1].offset
                found.append(self._traced(history.event_of(row)))
                size, last = size + size_of(row), name
        return deque(groups_of(self.lane, found)), self.through

    async def _events_of(self, group: Group, held: Holding, size: int) -> AsyncGenerator[bytes, None]:
        """Yield the events for a command, each made when it is wanted; `size` is what is in memory beside it."""
        work, owner = self.context.gate.work, owner_of(self.context.actor)
        self._position.advance(group.lane, group.last_offset, group.mark)
        pushes, channel = pushes_of(group), f"executions:{self.turn['execution_id']}"
        for index, push in enumerate(pushes, 1):
            if channel not in push.channels or self.shown.is_over:
                continue
            held.keep(size)
            cursor = self._position.cursor_within(group.lane, index, len(pushes))
            event = await work.counted(owner, partial(self._event, push, cursor))
            if event and self.place < (group.last_offset, index):
                held.keep(size + len(event))
                yield event

    def _event(self, push: Push, cursor: str) -> bytes:
        return self.shown.event({"type": push.type, "cursor": cursor, **push.resource()})

    def _traced(self, event: Event) -> Event:
        """Return an event with the trace of the turn, which its row in the views has and the history has not."""
        if not isinstance(event.body, MessageSent) or event.offset != self.turn["log_offset"]:
            return event
        return event._replace(meta=event.meta._replace(trace=self.turn["trace"] or ""))
