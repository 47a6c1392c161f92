"""Rows of executions as they were at earlier offsets, for the messages of that time."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.live.cache import Cache
from gateway.live.facts import Group
from gateway.problems import Problem
from gateway.pushes.messages import CHANGES_NOTHING
from projections.folds.fold import needed_rows
from projections.folds.rows import Row
from projections.queries.history import ExecutionState, WantedRows
from projections.queries.moment import size_of
from schemas.events.calls import ToolCallProposed
from schemas.events.executions import ExecutionStarted
from schemas.events.holds import HoldOpened

# So much of the rows of earlier commands is kept for later ones. What is missing is folded again from the history.
KEPT_BYTES = 2 * 1024 * 1024
# The views are slightly behind the log. While they do not advance at all, or cannot be read, a reader that waits for
# them leaves its turn to others.
VIEWS_WITHIN_S = 1.0
BEHIND_S = 10.0
PAUSE_S = 0.05

# An execution's state after its events before an offset, with wanted rows; None if the views have not read that far.
RowsAt = Callable[[bytes, int, int, WantedRows], Awaitable[ExecutionState | None]]
# The state of a group's execution before it, with wanted rows.
Before = Callable[[Group, WantedRows], Awaitable[ExecutionState]]


class RowsAway(Exception):
    """The rows of a group cannot be read now: the views are behind, or their database does not answer."""

    def __init__(self, why: str, group: Group) -> None:
        super().__init__(why)
        self.group = group


class _Name(NamedTuple):
    """The name of a row: its table, the Kafka key of its execution, and its id."""

    table: str
    key: bytes
    id: str = ""


@dataclass(slots=True)
class PastRows:
    """The rows of recently seen executions, into which the events of each of their commands are folded.

    Attributes:
        before: finds the rows that are not kept; its errors are those of `fill`.
        size: the bytes of the rows that are kept, and of those of the last group.
    """

    before: Before
    size: int = 0
    _rows: OrderedDict[_Name, Row] = field(default_factory=OrderedDict)

    async def fill(self, group: Group) -> None:
        """Add to a group's facts the rows as they were after each of its events."""
        cache, execution = Cache(), _Name("executions", group.key)
        for name in await self.have(group, self.before):
            _seed(cache, name, self._rows.get(name))
        rows = cache.folding(group.key)
        for fact in group.facts:
            rows.apply(fact)
        self._put(execution, rows.execution)
        for table, found in (("calls", rows.calls), ("holds", rows.holds), ("turns", rows.turns)):
            for row_id, row in found.items():
                self._put(_Name(table, group.key, row_id), row)

    async def have(self, group: Group, before: Before) -> list[_Name]:
        """Fetch the rows as they were before a group, unless they are kept; return the names of those that it needs.

        They are kept until the group is filled, however large they are.
        """
        execution = _Name("executions", group.key)
        needed = [execution, *_needed(group)]
        needed += [*self._related(group, needed)]
        self._trim(needed)
        is_kept = all(name in self._rows for name in needed)
        if not is_kept and not _begins(group):
            needed += self._keep_state(group.key, await before(group, _wanted(needed)))
        return list(dict.fromkeys(needed))

    def _related(self, group: Group, needed: list[_Name]) -> Iterator[_Name]:
        """Yield what rows that are kept say is needed as well: a hold's call, and the turn that is answered."""
        for name in needed:
            row = self._rows.get(name)
            if name.table == "holds" and row is not None and row["call_id"]:
                yield name._replace(table="calls", id=row["call_id"])
        execution = self._rows.get(_Name("executions", group.key))
        proposes = any(isinstance(fact.event.body, ToolCallProposed | HoldOpened) for fact in group.facts)
        if proposes and execution is not None and execution["turn_id"]:
            yield _Name("turns", group.key, execution["turn_id"])

    def _keep_state(self, key: bytes, state: ExecutionState) -> list[_Name]:
        """Keep the rows of a state, and return their names."""
        tables = (("calls", state.calls), ("holds", state.holds), ("turns", state.turns))
        found = {_Name(table, key, row_id): row for table, rows in tables for row_id, row in rows.items()}
        execution = _Name("executions", key)
        for name, row in (*found.items(), (execution, state.execution)):
            # What is kept is as new, and has the trace of its turn, which the history has not.
            if name not in self._rows:
                self._put(name, row)
        return list(found)

    def _put(self, name: _Name, row: Row | None) -> None:
        if row is None:
            return
        before = self._rows.pop(name, None)
        self.size += size_of(row) - (0 if before is None else size_of(before))
        self._rows[name] = row

    def _trim(self, needed: list[_Name]) -> None:
        """Drop the rows beyond the limit that are not needed now, least recently used first."""
        kept = [name for name in needed if name in self._rows]
        for name in kept:
            self._rows.move_to_end(name)
        while self.size > KEPT_BYTES and len(self._rows) > len(set(kept)):
            self.size -= size_of(self._rows.popitem(last=False)[1])


async def settled(rows: RowsAt, group: Group, wanted: WantedRows) -> ExecutionState:
    """Return the state before a group, once the views have read that far; a long history takes its time.

    Raises:
        RowsAway: the views are behind for too long, or cannot be read.
    """
    partition, until_s = group.facts[0].event.partition, time.monotonic() + BEHIND_S
    try:
        while (state := await rows(group.key, partition, group.first_offset, wanted)) is None:
            if time.monotonic() >= until_s:
                raise RowsAway("the views do not contain the earlier state yet", group)
            await asyncio.sleep(PAUSE_S)
    except Problem as problem:
        raise RowsAway(problem.detail, group) from problem
    return state


async def settled_soon(rows: RowsAt, group: Group, wanted: WantedRows) -> ExecutionState:
    """As `settled`, for a reader in whose turn others wait: it has only `VIEWS_WITHIN_S`, for a long history too."""
    try:
        async with asyncio.timeout(VIEWS_WITHIN_S):
            return await settled(rows, group, wanted)
    except TimeoutError as error:
        raise RowsAway("the earlier state takes long", group) from error


def _begins(group: Group) -> bool:
    return isinstance(group.facts[0].event.body, ExecutionStarted)


def _needed(group: Group) -> Iterator[_Name]:
    """Yield the calls, holds and turns whose rows a group's events change."""
    events = [fact.event for fact in group.facts if type(fact.event.body) not in CHANGES_NOTHING]
    needed = needed_rows(events)
    tables = (("calls", needed.calls), ("holds", needed.holds | needed.of_holds), ("turns", needed.turns))
    for table, names in tables:
        for key, row_id in names:
            yield _Name(table, key, row_id)


def _wanted(needed: list[_Name]) -> WantedRows:
    ids = {
        table: frozenset(name.id for name in needed if name.table == table)
        for table in ("calls", "holds", "turns")
    }
    return WantedRows(**ids)


def _seed(cache: Cache, name: _Name, row: Row | None) -> None:
    """Store a row in the cache of one group."""
    if row is None:
        return
    match name.table:
        case "executions":
            cache.put_execution(name.key, row)
        case "calls":
            cache.put_call(name.key, row)
        case "holds":
            cache.put_hold(row)
        case _:
            cache.put_turn(row)
