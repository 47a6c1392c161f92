"""Rows by id, never older than the tail's position: from the cache, or fetched into it from the views."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from gateway.live.cache import Cache, key_of
from gateway.live.live import DEFINITIONS_LANE, Live, lane_of
from gateway.live.turns import TurnKey
from gateway.problems import Problem, not_found
from log.errors import LogError
from projections.folds.rows import Row
from schemas.ids import execution_key
from schemas.refusals import Refusal
from schemas.topics import partition_of

Kind = Literal["execution", "call", "hold", "request", "turn"]
FETCH_TIMEOUT_S = 3.0
FIRST_PAUSE_S = 0.005
PAUSE_MAX_S = 0.1
# At most this many executions that chose the same id for a request are read.
REQUESTS_MAX = 100


class Subject(NamedTuple):
    """A resource of a project: `execution_id` is empty for holds and requests; a request's `id` is its hold's."""

    kind: Kind
    tenant: str
    project: str
    execution_id: str = ""
    id: str = ""

    @property
    def key(self) -> bytes:
        """The Kafka key of its execution."""
        return execution_key(self.tenant, self.project, self.execution_id)


class Found(NamedTuple):
    """The views at one moment: the row, and per partition the first offset not read yet."""

    row: Row | None
    positions: Mapping[int, int]


class FoundAll(NamedTuple):
    """The same with several rows."""

    rows: Sequence[Row]
    positions: Mapping[int, int]


class Named(NamedTuple):
    """Requests by the id that their executions chose for them; with `agent`, only that agent's."""

    tenant: str
    project: str
    request_id: str
    agent: str | None


class Rows(Protocol):
    """The views, one row at a time."""

    async def find(self, subject: Subject) -> Found:
        """Return the row of a subject with the positions of the same moment.

        Raises:
            Problem: 503, the views cannot be read; 429, the subject that asks is beyond its share.
        """
        ...

    async def requests(self, named: Named) -> FoundAll:
        """Return the newest requests with an id, at most `REQUESTS_MAX`, with the positions; errors as `find`."""
        ...


EndOffsets = Callable[[], Awaitable[Sequence[int]]]


@dataclass(slots=True)
class Reader:
    """Reads rows for one gateway."""

    live: Live
    rows: Rows
    end_offsets: EndOffsets
    partitions: int

    def with_rows(self, rows: Rows) -> Reader:
        """Return this reader over other lookups: those of one subject, at its cost."""
        return replace(self, rows=rows)

    def at_hand(self, subject: Subject) -> Row | None:
        """Return the row, if it is cached."""
        return at_hand(self.live.cache, subject)

    async def read(self, subject: Subject) -> Row:
        """Return the row as it is now.

        Raises:
            Problem: 404 not_found, or 503 if it cannot be read in time.
        """
        return self.at_hand(subject) or await self.fetch(subject)

    async def fetch(self, subject: Subject) -> Row:
        """Fetch a row from the views into the cache; errors as `read`."""
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                return await self._fetch(subject)
        except TimeoutError as error:
            raise _views_behind() from error

    async def stored(self, subject: Subject) -> Row:
        """Return the row as the views have it, cached or not: it may be older than the tail; errors as `read`."""
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                while (row := (await self.rows.find(subject)).row) is None:
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, PAUSE_MAX_S)
        except TimeoutError as error:
            raise _views_behind() from error
        return row

    async def requests(self, named: Named) -> list[Row]:
        """Return the newest holds that are requests with an id, at most `REQUESTS_MAX`, without missing any.

        Raises:
            Problem: 503, the views or the log are not read in time.
        """
        anywhere, pause_s = Subject("request", named.tenant, named.project), FIRST_PAUSE_S
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                # Another gateway may have opened one a moment ago: so the log is read to its present end first.
                await self._catch_up(anywhere)
                while True:
                    found = await self.rows.requests(named)
                    if self._is_whole(anywhere, found.positions):
                        break
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, PAUSE_MAX_S)
        except TimeoutError as error:
            raise _views_behind() from error
        cached = self.live.cache.requests(named.tenant, named.project, named.request_id)
        known = [row for row in cached if named.agent in (None, row["agent"])]
        return list({row["hold_id"]: row for row in (*found.rows, *known)}.values())

    async def caught_up(self, subject: Subject) -> Row:
        """Return the row of a subject, after everything that the broker now has of it was read.

        To state that something did not happen, call this first: another gateway may already have seen it happen.

        Raises:
            Problem: as `read`; 503 if the log is not read that far in time.
        """
        await self._in_time(self._lanes(subject))
        return await self.read(subject)

    async def definitions_caught_up(self) -> None:
        """Read the definitions to their present end.

        Raises:
            Problem: 503, they are not read in time.
        """
        await self._in_time([DEFINITIONS_LANE])

    async def all_caught_up(self) -> None:
        """Read the whole log to its present end.

        Raises:
            Problem: 503, it is not read in time.
        """
        await self._in_time(range(len(self.live.read_through)))

    async def _in_time(self, lanes: Sequence[int]) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                is_read = await self._read_to_the_end(lanes)
        except (TimeoutError, LogError) as error:
            raise _behind() from error
        if not is_read:
            raise _behind()

    async def _fetch(self, subject: Subject) -> Row:
        pause_s = FIRST_PAUSE_S
        asked_the_broker = False
        while (row := self.at_hand(subject)) is None:
            found = await self.rows.find(subject)
            if found.row is not None and (row := await self._keep(subject, found)) is not None:
                return row
            if found.row is None and self._is_whole(subject, found.positions):
                if asked_the_broker:
                    raise not_found(subject.kind)
                # Another gateway may have created it a moment ago: so the log is read to its present end first.
                await self._catch_up(subject)
                asked_the_broker = True
                continue
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
        return row

    async def _keep(self, subject: Subject, found: Found) -> Row | None:
        """Cache a row if it has its state at the tail's position; return None while it has not."""
        row = found.row
        if row is None:
            return None
        key = key_of(row)
        lane = lane_of(partition_of(key, self.partitions))
        shown_to = found.positions.get(lane - 1, 0)
        await self.live.until(lambda: self.live.read_through[lane] >= shown_to, FETCH_TIMEOUT_S)
        if (cached := self.at_hand(subject)) is not None:
            return cached
        if self.live.ring.last_offset_of(key, lane) >= shown_to:
            return None
        self._put(subject, key, row)
        return row

    def _put(self, subject: Subject, key: bytes, row: Row) -> None:
        cache = self.live.cache
        if subject.kind == "execution":
            cache.put_execution(key, row)
        elif subject.kind == "call":
            cache.put_call(key, row)
        elif subject.kind == "turn":
            cache.put_turn(row)
        else:
            cache.put_hold(row)

    def _lanes(self, subject: Subject) -> list[int]:
        if subject.execution_id:
            return [lane_of(partition_of(subject.key, self.partitions))]
        return [lane_of(partition) for partition in range(self.partitions)]

    def _is_whole(self, subject: Subject, positions: Mapping[int, int]) -> bool:
        """Return True if the views and the cache together contain everything that the tail has read."""
        ring = self.live.ring
        owner = (subject.tenant, subject.project)
        if not subject.execution_id and self.live.cache.has_incomplete(*owner, subject.id, positions):
            return False
        if subject.execution_id and ring.knows(subject.key):
            lane = self._lanes(subject)[0]
            return positions.get(lane - 1, 0) > ring.last_offset_of(subject.key, lane)
        return all(positions.get(lane - 1, 0) > ring.gone_through[lane] for lane in self._lanes(subject))

    async def _catch_up(self, subject: Subject) -> None:
        await self._read_to_the_end(self._lanes(subject))

    async def _read_to_the_end(self, lanes: Sequence[int]) -> bool:
        """Wait until the tail has read to the broker's present end; False if it does not in time."""
        ends = await self.end_offsets()
        return await self.live.until(
            lambda: all(self.live.read_through[lane] >= ends[lane] for lane in lanes), FETCH_TIMEOUT_S
        )


def _views_behind() -> Problem:
    detail = "the views are behind the log: try again in a moment"
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=1)


def _behind() -> Problem:
    detail = "this gateway has not read the log to its end: try again in a moment"
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=1)


def at_hand(cache: Cache, subject: Subject) -> Row | None:
    """Return the row of a subject in a cache; a row of another project counts as missing."""
    if subject.kind == "execution":
        return cache.executions.get(subject.key)
    if subject.kind == "call":
        return cache.calls.get((subject.key, subject.id))
    if subject.kind == "turn":
        return cache.turns.get(TurnKey(subject.key, subject.id))
    row = cache.holds.get(subject.id)
    is_ours = row is not None and (row["tenant"], row["project"]) == (subject.tenant, subject.project)
    return row if is_ours else None
