"""What has happened in a turn so far, as the events of its chat.

For a reader that comes without a cursor, or comes back after the turn has ended. The events are made of the views'
history, in the order and with the content that they had when they were new. Their cursors name the same place in the
log of the conversation, and for other partitions, of which a chat shows nothing, the present.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from gateway.live.cache import Cache, key_of
from gateway.live.cursor import ALL_GIVEN, NONE, Position, Vector
from gateway.live.facts import Group
from gateway.live.live import groups_of, lane_of
from gateway.pushes.messages import Push, pushes_of
from gateway.pushes.past_rows import keep_state
from gateway.rest.history import read_execution
from gateway.rest.request_context import RequestContext
from gateway.shares.work import owner_of
from gateway.sockets.chat import ChatEvents
from projections.queries import history
from projections.queries.history import ExecutionState
from projections.queries.moment import Moment
from projections.tables.conversations import TurnRow
from schemas.events.conversations import MessageSent
from schemas.record import Event
from schemas.topics import partition_of

# So many events of the log are read and made into events of the chat at once.
PAGE = 100


class Place(NamedTuple):
    """A reader's place in the log of a conversation: after `given` messages of the command that ends at `offset`."""

    offset: int
    given: int


def past_of(
    context: RequestContext, turn: TurnRow, shown: ChatEvents, after: Vector | None, known: int
) -> AsyncGenerator[bytes, None] | None:
    """Have a stream show a turn, and return the events that it begins with.

    Args:
        context: of the request.
        turn: the turn as it is now.
        shown: what the stream shows.
        after: the position from which the reader comes back; None if it comes anew.
        known: the last offset of the conversation that this gateway had read once the reader was subscribed.

    Returns:
        The events; None if there are none, or the reader is sent them as it catches up.
    """
    is_over, has_begun = turn["ended_at_ms"] is not None, turn["claims"] > 0
    past = TurnPast(context, turn, shown, after)
    # A turn that was opened after the reader had subscribed is still to come, whatever has become of it meanwhile.
    if is_over or (after is None and has_begun and turn["log_offset"] <= known):
        shown.follow(turn["turn_id"], is_ours=False)
        return past.events()
    shown.follow(turn["turn_id"], is_ours=has_begun and past.place.offset >= turn["log_offset"])
    return None


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
    What is after it reaches the reader as it happens.
    """

    context: RequestContext
    turn: TurnRow
    shown: ChatEvents
    after: Vector | None
    place: Place = field(init=False)
    lane: int = field(init=False)
    through: int = field(init=False)
    _position: Position = field(init=False)
    _rows: Cache | None = None

    def __post_init__(self) -> None:
        gate, key = self.context.gate, key_of(self.turn)
        self.lane = lane_of(partition_of(key, gate.partitions))
        self.through = gate.live.ring.last_offset_of(key, self.lane)
        self.place = Place(NONE, ALL_GIVEN)
        if (after := self.after) is not None:
            given = after.given if after.lane == self.lane else ALL_GIVEN
            self.place = Place(after.offsets[self.lane], given)
        position = gate.live.position
        self._position = Position.at(position.key, Vector(tuple(position.offsets), tuple(position.marks)))

    def has(self, cursor: str) -> bool:
        """Return True if the message with a cursor is part of this past."""
        return self._position.key.read(cursor).offsets[self.lane] <= self.through

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the events, until the turn ends or the past does.

        Raises:
            Problem: 503, the views are behind for too long, or cannot be read.
        """
        gate, offset = self.context.gate, self.turn["log_offset"] - 1
        while offset < self.through and not self.shown.is_over:
            # A query is repeated until the views have read far enough: it changes nothing here.
            state, groups, offset = await read_execution(
                self.context, self.turn["execution_id"], partial(self._read, after=offset)
            )
            found = await gate.work.counted(
                owner_of(self.context.actor), partial(self._made, state=state, groups=groups)
            )
            for event in found:
                yield event
        self.shown.pass_over(self.has)

    def _read(self, moment: Moment, after: int) -> tuple[ExecutionState | None, list[Group], int]:
        """Return the state before the turn, at first, the next commands, and the offset through which they are."""
        turn = self.turn
        owner = (turn["tenant"], turn["project"], turn["execution_id"])
        state = history.state_at(moment, *owner, offset=after) if self._rows is None else None
        limit, groups, is_all = PAGE, list[Group](), False
        while not groups and not is_all:
            rows = history.events(
                moment, *owner, after_offset=after, through_offset=self.through, limit=limit
            )
            is_all = len(rows) < limit
            groups = groups_of(self.lane, [self._traced(history.event_of(row)) for row in rows])
            if not is_all:
                # The last command may have more events.
                del groups[-1]
            limit *= 2
        return state, groups, self.through if is_all else groups[-1].last_offset

    def _made(self, state: ExecutionState | None, groups: list[Group]) -> list[bytes]:
        """Return the events for commands, which follow those before."""
        if self._rows is None:
            self._rows = Cache()
        if state is not None:
            keep_state(self._rows, key_of(self.turn), state)
        return [event for group in groups for event in self._events(group, self._rows)]

    def _events(self, group: Group, cache: Cache) -> list[bytes]:
        if self.shown.is_over:
            return []
        rows = cache.folding(group.key)
        for fact in group.facts:
            rows.apply(fact)
        rows.keep()
        self._position.advance(group.lane, group.last_offset, group.mark)
        pushes, found, channel = pushes_of(group), list[bytes](), f"executions:{self.turn['execution_id']}"
        for index, push in enumerate(pushes, 1):
            if channel not in push.channels or self.shown.is_over:
                continue
            cursor = self._position.cursor_within(group.lane, index, len(pushes))
            event = self.shown.event(_message(push, cursor))
            if event and self.place < (group.last_offset, index):
                found.append(event)
        return found

    def _traced(self, event: Event) -> Event:
        """Return an event with the trace of the turn, which its row in the views has and the history has not."""
        if not isinstance(event.body, MessageSent) or event.offset != self.turn["log_offset"]:
            return event
        return event._replace(meta=event.meta._replace(trace=self.turn["trace"] or ""))


def _message(push: Push, cursor: str) -> dict[str, Any]:
    return {"type": push.type, "cursor": cursor, **push.resource()}
