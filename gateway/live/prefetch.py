"""The executions that are not cached, fetched before the tail folds events that need their rows.

A gateway does not keep every execution that it knows: of a conversation that was quiet for long, or that started
before this gateway did, the next message comes without one. The tail waits for the row here, for a moment: while the
views are away, the events are folded without it (`gateway.live.cache.Incomplete`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gateway.live.cache import Cache
from gateway.problems import Problem
from projections.folds.events import EFFECTS
from projections.queries.history import NO_ROWS, ExecutionState, WantedRows
from projections.tables.executions import ExecutionRow
from schemas.events.executions import ExecutionStarted
from schemas.record import Event

logger = logging.getLogger(__name__)

# The first row of what they begin has columns of its execution.
BEGINS_WORK = frozenset(
    kind for kind, effect in EFFECTS.items() if effect.proposes or effect.opens or effect.opens_turn
)
# The tail stands still meanwhile, for all executions.
WITHIN_S = 1.0
PAUSE_S = 0.02
# After a failure the views are not waited for again at once.
RETRY_AFTER_S = 5.0


class StoredExecutions(NamedTuple):
    """Executions by Kafka key, and per partition the first offset that the views have not read."""

    rows: Mapping[bytes, ExecutionRow]
    positions: Mapping[int, int]


class Stored(Protocol):
    """The executions in the views."""

    async def executions(self, keys: Collection[bytes]) -> StoredExecutions:
        """Return the rows by Kafka key, as far as the views have them, with the positions of the same moment.

        Raises:
            Problem: they cannot be read.
        """
        ...

    async def state_before(
        self, key: bytes, partition: int, offset: int, wanted: WantedRows
    ) -> ExecutionState | None:
        """Return an execution as it was before an offset of its partition; errors as `executions`."""
        ...


@dataclass(slots=True)
class Prefetch:
    """Fetches for one gateway."""

    cache: Cache
    stored: Stored
    _not_before_s: float = field(default=0.0, init=False)

    async def before(self, events: Sequence[Event]) -> None:
        """Cache the executions that events need, as they are before those; never raises for views that are away."""
        wanted = self._wanted(events)
        if not wanted or time.monotonic() < self._not_before_s:
            return
        try:
            async with asyncio.timeout(WITHIN_S):
                wanted = await self._missing(wanted)
                while wanted:
                    await asyncio.sleep(PAUSE_S)
                    wanted = await self._missing(wanted)
        except (Problem, TimeoutError) as error:
            self._not_before_s = time.monotonic() + RETRY_AFTER_S
            why = error.detail if isinstance(error, Problem) else f"not within {WITHIN_S:g} s"
            logger.warning("%d executions could not be fetched before their events: %s", len(wanted), why)

    def _wanted(self, events: Sequence[Event]) -> dict[bytes, Event]:
        """Return the first of the events of each execution that is needed."""
        started, needed = set[bytes](), set[bytes]()
        for event in events:
            kind = type(event.body)
            if kind is ExecutionStarted:
                # Refusals can come before it.
                started.add(event.key)
            elif kind in BEGINS_WORK and event.key not in started:
                needed.add(event.key)
        missing = {key for key in needed if self.cache.executions.get(key) is None}
        first: dict[bytes, Event] = {}
        if missing:
            for event in events:
                if event.key in missing:
                    first.setdefault(event.key, event)
        return first

    async def _missing(self, wanted: Mapping[bytes, Event]) -> dict[bytes, Event]:
        """Fetch executions; return those that the views have not read far enough."""
        rows, positions = await self.stored.executions(wanted)
        missing = {}
        for key, first in wanted.items():
            row = rows.get(key)
            if row is not None and row["version"] == first.meta.version - 1:
                # The number of its events: the views have read all before this one, and no more.
                self.cache.put_execution(key, row)
            elif positions.get(first.partition, 0) <= first.offset:
                missing[key] = first
            else:
                await self._put_past(key, first)
        return missing

    async def _put_past(self, key: bytes, first: Event) -> None:
        """Cache the row that an execution had before an event that the views have read."""
        state = await self.stored.state_before(key, first.partition, first.offset, NO_ROWS)
        if state is not None and state.execution is not None:
            self.cache.put_execution(key, state.execution)
