"""Rows of executions as they were at earlier offsets, for the messages of that time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.live.cache import Cache
from gateway.live.facts import Group
from gateway.live.past import PastGone
from gateway.problems import Problem
from projections.queries.history import ExecutionState
from schemas.events.executions import ExecutionStarted

KNOWN_MAX = 1_000
# The views are slightly behind the log; if they do not advance at all, the reader stops waiting.
VIEWS_WITHIN_S = 10.0
PAUSE_S = 0.05

# An execution's state after its events before an offset; None if the views have not read that far.
RowsAt = Callable[[bytes, int, int], Awaitable[ExecutionState | None]]


@dataclass(slots=True)
class PastRows:
    """The rows of recently seen executions, into which the events of each of their commands are folded."""

    before: RowsAt
    _cache: Cache = field(default_factory=Cache)
    _known: set[bytes] = field(default_factory=set)

    async def fill(self, group: Group) -> None:
        """Add to a group's facts the rows as they were after each of its events.

        Raises:
            PastGone: the rows are not available.
        """
        if len(self._known) >= KNOWN_MAX:
            self._cache, self._known = Cache(), set()
        if group.key not in self._known:
            if not isinstance(group.facts[0].event.body, ExecutionStarted):
                keep_state(self._cache, group.key, await self._state(group))
            self._known.add(group.key)
        rows = self._cache.folding(group.key)
        for fact in group.facts:
            rows.apply(fact)
        rows.keep()

    async def _state(self, group: Group) -> ExecutionState:
        partition = group.facts[0].event.partition
        try:
            async with asyncio.timeout(VIEWS_WITHIN_S):
                while True:
                    state = await self.before(group.key, partition, group.first_offset)
                    if state is not None:
                        return state
                    await asyncio.sleep(PAUSE_S)
        except (TimeoutError, Problem) as error:
            raise PastGone("the views do not contain the earlier state") from error


def keep_state(cache: Cache, key: bytes, state: ExecutionState) -> None:
    """Store the rows of an execution in a cache."""
    if state.execution is not None:
        cache.put_execution(key, state.execution)
    for call in state.calls.values():
        cache.put_call(key, call)
    for hold in state.holds.values():
        cache.put_hold(hold)
    for turn in state.turns.values():
        cache.turns.put(turn)
