"""Catching up: the messages that a reader missed since its cursor, read from the log, until memory can continue.

For a reader whose cursor is older than this gateway's memory, or of another gateway:
1. its live channels pause, so that all messages reach it in one order and every cursor means what was sent before;
2. the cursor's lanes are read from Kafka, independently of the tail, and each command makes exactly the messages that
   it made when it was new: its rows are folded from the views' history of the execution up to that offset;
3. the messages in memory follow; with the last of them, in the same turn of the event loop, the reader is live.

Readers that catch up share a small number of turns, of which those of one subject have one at a time. A turn ends
after a number of bytes or seconds, and the next reader gets one; the work is done in slices, each followed by a
longer rest, so that others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from gateway.deciding import sees_hold
from gateway.live.cursor import ALL_GIVEN, NONE, Position, Vector
from gateway.live.facts import Group
from gateway.live.live import DEFINITIONS_LANE, Live
from gateway.live.past import Passed, PastGone, PastLane
from gateway.problems import Problem
from gateway.pushes.hub import Hub, Receiver, project_of, unserved
from gateway.pushes.joining import can_join
from gateway.pushes.messages import EVENTS, HOLDS, Push, frame, pushes_of
from gateway.pushes.past_rows import PastRows, RowsAt, RowsAway, settled, settled_soon
from gateway.pushes.reading_turns import ReadingTurns
from gateway.pushes.resyncs import Resync
from gateway.pushes.returning import Past, Returning, has_place
from log.errors import LogError
from schemas.ids import split_rule_uses_key
from schemas.record import RawRecord
from schemas.refusals import Refusal
from schemas.term import TermRule

logger = logging.getLogger(__name__)

TURN_BYTES = 8 * 1024 * 1024
TURN_S = 2.0
SLICE_S = 0.002
REST_OF_SLICE = 2.0
# Longer work was mostly waiting.
WORKED_MAX_S = 0.01
# A reader that takes longer than this can never catch up: new events arrive faster than it reads.
WHOLE_S = 900.0
AHEAD_S = 10.0
RETRY_S = 1.0
# A reader that waits for the views for so long gives its place to others.
AWAY_S = 60.0
MEMORY_GROUPS = 2_000


@dataclass(slots=True)
class CatchUps:
    """All readers that catch up at this gateway."""

    live: Live
    hub: Hub
    past: Past
    rows: RowsAt
    rule_at: Callable[[int, int], TermRule] = lambda lane, claim: TermRule(claim)
    turns: ReadingTurns = field(default_factory=ReadingTurns)
    messages: int = 0

    async def is_of_this_log(self, receiver: Receiver, vector: Vector, lane: int) -> bool:
        """Return True if a lane of this log has the record that a reader's cursor names there.

        Raises:
            Problem: as `run`; 503 unavailable, the log cannot be read.
        """
        offset, mark = vector.offsets[lane], vector.marks[lane]
        if offset == NONE or self.live.ring.connects(lane, offset, mark):
            return True
        reader = PastLane(lane, vector._replace(given=ALL_GIVEN), _none, partial(self.rule_at, lane))
        try:
            with self.turns.place(receiver):
                async with asyncio.timeout(AHEAD_S), self.turns.shared:
                    return await has_place(self.past, reader)
        except PastGone as error:
            logger.info("a reader must begin anew: %s", error)
        except (LogError, TimeoutError) as error:
            detail = "the log cannot be read now: try again"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1) from error
        return False

    async def run(self, receiver: Returning, channels: set[str], cursor: str, vector: Vector) -> None:
        """Send a reader what it missed on some channels since its cursor, then make it live.

        If that is no longer possible, it is told to subscribe anew. If the log or the views cannot be read for too
        long, its connection ends, and it has missed nothing.

        Raises:
            Problem: too many readers are catching up, of this subject or in total.
        """
        with self.turns.place(receiver):
            await self._run(receiver, channels, cursor, vector)

    async def _run(self, receiver: Returning, channels: set[str], cursor: str, vector: Vector) -> None:
        one = _CatchUp(self, receiver, channels, vector)
        receiver.behind, receiver.catching = cursor, channels | receiver.channels
        self.hub.unsubscribe(receiver, receiver.channels)
        try:
            async with asyncio.timeout(WHOLE_S):
                await one.run()
        except PastGone as error:
            logger.info("a reader cannot catch up: %s", error)
            receiver.resync(Resync.GONE)
        except TimeoutError:
            logger.info("a reader cannot catch up: %s", one.waits_for or "it is too slow")
            if one.waits_for:
                receiver.give_up(
                    Problem(Refusal.UNAVAILABLE, f"{one.waits_for}: connect again", retry_after=1)
                )
            else:
                receiver.resync(Resync.TOO_SLOW)
        finally:
            self.messages += one.given
            receiver.behind, receiver.catching = None, set()


def _none(key: bytes) -> bool:
    return False


@dataclass(slots=True)
class _CatchUp:
    """One reader that catches up.

    Attributes:
        handled: per lane, the offset up to which everything was sent.
        waits_for: why it does not get on; empty while it does.
    """

    all: CatchUps
    receiver: Returning
    fresh: set[str]
    vector: Vector
    given: int = 0
    waits_for: str = ""
    handled: list[int] = field(init=False)
    position: Position = field(init=False)
    rested_at: Vector = field(init=False)
    is_inside: bool = field(init=False)
    _old: set[str] = field(init=False)
    _known: set[int] = field(default_factory=set)
    _lanes: dict[int, PastLane] = field(default_factory=dict)
    _rows: PastRows = field(init=False)
    _slice_at: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        live = self.all.live
        self.handled = list(self.vector.offsets)
        self.position = Position.at(live.position.key, self.vector)
        self.rested_at = Vector(tuple(live.position.offsets), tuple(live.position.marks))
        self.is_inside = self.vector.given != ALL_GIVEN
        self._old = set(self.receiver.channels)
        self._rows = self._no_rows()

    def _no_rows(self) -> PastRows:
        return PastRows(partial(settled_soon, self.all.rows))

    async def run(self) -> None:
        """Continue until the reader is live, wants no channel any more, or takes no more messages."""
        # A cursor of another gateway may be slightly ahead of this gateway.
        await self.all.live.reached(self.vector, AHEAD_S)
        while self.receiver.catching:
            await self.receiver.drained()
            if self.receiver.is_closed:
                return
            lanes = self._unread()
            if self.is_inside and self.vector.lane not in lanes:
                self._give_rest_of_command()
            elif lanes:
                # A cursor can be inside of one command only: the rest of that command comes before everything else.
                await self._turn([self.vector.lane] if self.is_inside else lanes)
            elif await self._from_memory():
                return

    def _unread(self) -> list[int]:
        """Return the lanes with messages that were not sent yet and are not in memory."""
        ring, vector, found = self.all.live.ring, self.vector, []
        for lane, handled in enumerate(self.handled):
            if lane not in self._known and ring.connects(lane, vector.offsets[lane], vector.marks[lane]):
                self._known.add(lane)
            if (
                (self.is_inside and lane == vector.lane and not ring.has(lane, handled))
                or lane not in self._known
                or handled < ring.gone_through[lane]
            ):
                found.append(lane)
        return found

    async def _turn(self, lanes: list[int]) -> None:
        away: Group | None = None
        async with self.all.turns.turn(self.receiver):
            try:
                await self._begin(lanes)
                await self._read(set(lanes))
                self.waits_for = ""
            except LogError as error:
                self._wait_for("the log cannot be read now", error)
            except RowsAway as error:
                self._wait_for("the views cannot be read now", error)
                away = error.group
        if away is not None:
            await self._rows_of(away)
        if self._unread():
            # Other waiting readers get their turn; and Kafka, if it was unreachable, gets time to recover.
            await asyncio.sleep(0 if self.receiver.has_room else RETRY_S / 10)

    def _wait_for(self, what: str, error: Exception) -> None:
        self.waits_for = what
        logger.info("a reader waits for its earlier messages: %s", error)

    async def _rows_of(self, group: Group) -> None:
        """Wait for the rows of a group that could not be sent; its lane is read again from there, in another turn."""
        self._lanes.pop(group.lane, None)
        until_s = time.monotonic() + AWAY_S
        while self.receiver.catching:
            try:
                await self._rows.have(group, partial(settled, self.all.rows))
                return
            except RowsAway as error:
                if time.monotonic() >= until_s:
                    # Its place is for others meanwhile; its client comes back with the same position.
                    raise TimeoutError from error
                await asyncio.sleep(RETRY_S)

    async def _begin(self, lanes: list[int]) -> None:
        new = [lane for lane in lanes if lane not in self._lanes]
        for lane, (first, end) in (await self.all.past.bounds(new) if new else {}).items():
            reader = PastLane(lane, self._place(), self._wants, partial(self.all.rule_at, lane))
            reader.begin_at(first, end)
            self._lanes[lane] = reader

    def _place(self) -> Vector:
        """Return the reader's position, on the lanes that are not read yet."""
        given = self.vector.given if self.is_inside else ALL_GIVEN
        return Vector(tuple(self.position.offsets), tuple(self.position.marks), self.vector.lane, given)

    async def _read(self, lanes: set[int]) -> None:
        places = {lane: self._lanes[lane].next_offset for lane in lanes}
        until, size = time.monotonic() + TURN_S, 0
        async with aclosing(self.all.past.read(places)) as chunks:
            async for lane, raws in chunks:
                for raw in raws:
                    if not self.receiver.catching or not self.receiver.has_room:
                        return
                    if lane in lanes and not await self._take(lane, raw):
                        lanes.discard(lane)
                    size += len(raw.value)
                    await self._rest()
                if not lanes or size > TURN_BYTES or time.monotonic() > until:
                    return

    async def _take(self, lane: int, raw: RawRecord) -> bool:
        """Take a record; return False when the lane is read up to where memory begins."""
        reader, gone = self._lanes[lane], self.all.live.ring.gone_through[lane]
        if raw.offset <= max(gone, reader.place) and (passed := reader.take(raw)) is not None:
            await self._give_passed(passed)
        if raw.offset >= reader.place:
            self._known.add(lane)
        if raw.offset < max(gone, reader.place) and lane != DEFINITIONS_LANE:
            return True
        if lane not in self._known:
            return True
        if (passed := reader.close()) is not None:
            await self._give_passed(passed)
        self.handled[lane] = max(gone, reader.place)
        return False

    async def _give_passed(self, passed: Passed) -> None:
        group = passed.group
        is_sent = group is not None and project_of(group) is not None
        channels = self._channels_of(group) if group is not None and is_sent else set()
        if group is not None and channels - {EVENTS}:
            # First: without them, the position stays where it was.
            await self._rows.fill(group)
        self.position.advance(passed.lane, passed.offset, passed.mark)
        if group is not None and is_sent:
            self._give(group, passed.given, channels)
        if passed.lane == self.vector.lane and passed.offset == self.vector.offsets[passed.lane]:
            self.is_inside = False
        if not self.is_inside:
            self._stand_at(self.position.cursor())

    async def _from_memory(self) -> bool:
        """Send what is in memory; return True once the reader is live, False to go on in `run`."""
        while self.receiver.has_room:
            after = Vector(tuple(self.handled), self.vector.marks)
            groups = list(islice(self.all.live.ring.since(after), MEMORY_GROUPS))
            if can_join(groups):
                for group, _ in groups:
                    self._give_live(group)
                self.all.hub.subscribe(self.receiver, self.receiver.catching)
                return True
            for group, _ in groups:
                if not self.receiver.catching or not self.receiver.has_room:
                    return False
                self._give_live(group)
                await self._rest()
            if self._unread():
                return False
        return False

    def _give_rest_of_command(self) -> None:
        after = Vector(tuple(self.handled), self.vector.marks, self.vector.lane, self.vector.given)
        group, given = next(iter(self.all.live.ring.since(after)))
        self._give_live(group, given)

    def _give_live(self, group: Group, given: int = 0) -> None:
        self.position.advance(group.lane, group.last_offset, group.mark)
        self.handled[group.lane] = group.last_offset
        # If memory loses this lane again, it is read from here, and its rows are those of then.
        if self._lanes.pop(group.lane, None) is not None:
            self._rows = self._no_rows()
        if self._wants(group.key) and project_of(group) is not None:
            self._give(group, given, self._channels_of(group))
        self.is_inside = False
        self._stand_at(self.position.cursor())

    def _give(self, group: Group, given: int, channels: set[str]) -> None:
        pushes = pushes_of(group)
        if unserved(group, channels, pushes):
            raise PastGone(f"the rows of {group.key.decode()} are not available")
        for index, push in enumerate(pushes, 1):
            if index > given and self._is_for(push, channels):
                # The call may be over by now: to get the grant's token, the reader requests the call.
                cursor = self.position.cursor_within(group.lane, index, len(pushes))
                self._stand_at(cursor)
                self.receiver.push(frame(push, cursor))
                self.given += 1

    def _stand_at(self, cursor: str) -> None:
        # A reader that was told to subscribe anew has lost the messages that were waiting: no cursor covers them.
        if self.receiver.catching:
            self.receiver.behind = cursor

    def _is_for(self, push: Push, channels: set[str]) -> bool:
        wanted = channels.intersection(push.channels)
        if push.hold is not None and wanted == {HOLDS}:
            return sees_hold(self.all.live, push.hold, self.receiver.actor)
        return bool(wanted)

    def _channels_of(self, group: Group) -> set[str]:
        """Return the wanted channels of a group; those that were live before count only from where they paused."""
        is_after = group.last_offset > self.rested_at.offsets[group.lane]
        wanted = self.fresh | self._old if is_after else self.fresh
        return wanted & self.receiver.catching

    def _wants(self, key: bytes) -> bool:
        actor = self.receiver.actor
        prefix = f"{actor.tenant}/{actor.project}/"
        if not key.startswith(prefix.encode()) or split_rule_uses_key(key) is not None:
            return False
        execution_id = key[len(prefix) :].decode(errors="replace")
        return any(_is_about(channel, execution_id) for channel in self.receiver.catching)

    async def _rest(self) -> None:
        worked_s = time.perf_counter() - self._slice_at
        if worked_s >= SLICE_S:
            await asyncio.sleep(min(worked_s, WORKED_MAX_S) * REST_OF_SLICE)
            self._slice_at = time.perf_counter()


def _is_about(channel: str, execution_id: str) -> bool:
    kind, _, name = channel.partition(":")
    return not name or name == execution_id or (kind == "calls" and name.startswith(f"{execution_id}/"))
