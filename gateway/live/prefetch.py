"""The executions that are not cached, fetched before the tail folds events that need their rows.

A gateway does not keep every execution that it knows: of a conversation that was quiet for long, or that started
before this gateway did, the next message comes without one. The tail waits for the row here, for a moment: while the
views are away, the events are folded without it (`gateway.live.cache.Incomplete`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.live.cache import Cache
from gateway.problems import Problem
from projections.queries.history import NO_ROWS, ExecutionState, WantedRows
from projections.tables.executions import ExecutionRow
from schemas.events.calls import ToolCallProposed
from schemas.events.conversations import MessageSent
from schemas.events.executions import ExecutionStarted
from schemas.events.holds import HoldOpened, HumanInputRequested
from schemas.record import Event

logger = logging.getLogger(__name__)

BEGINS_WORK = frozenset({ToolCallProposed, HoldOpened, HumanInputRequested, MessageSent})
# The tail stands still meanwhile, for all executions.
WITHIN_S = 1.0
PAUSE_S = 0.02
# After a failure the views are not waited for again at once.
RETRY_AFTER_S = 5.0


class Stored(Protocol):
    """The executions in the views."""

    async def executions(self, keys: Collection[bytes]) -> Mapping[bytes, ExecutionRow]:
        """Return the rows by Kafka key, as far as the views have them.

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
            logger.warning("%d executions could not be fetched before their events: %s", len(wanted), error)

    def _wanted(self, events: Iterable[Event]) -> dict[bytes, Event]:
        """Return the first of the events of each execution that is needed."""
        needed = {event.key for event in events if type(event.body) in BEGINS_WORK}
        missing = {key for key in needed if self.cache.executions.get(key) is None}
        first: dict[bytes, Event] = {}
        if missing:
            for event in events:
                if event.key in missing:
                    first.setdefault(event.key, event)
        return {key: event for key, event in first.items() if not isinstance(event.body, ExecutionStarted)}

    async def _missing(self, wanted: Mapping[bytes, Event]) -> dict[bytes, Event]:
        """Fetch executions; return those that the views have not read far enough."""
        found = await self.stored.executions(wanted)
        return {
            key: first
            for key, first in wanted.items()
            if not ((row := found.get(key)) and await self._is_kept(key, row, first))
        }

    async def _is_kept(self, key: bytes, row: ExecutionRow, first: Event) -> bool:
        """Cache the row that an execution had before an event; False if the views have not read that far.

        An execution's version is the number of its events.
        """
        before: ExecutionRow | None = row
        if row["version"] >= first.meta.version:
            state = await self.stored.state_before(key, first.partition, first.offset, NO_ROWS)
            before = state.execution if state else None
        if before is None or before["version"] != first.meta.version - 1:
            return False
        self.cache.put_execution(key, before)
        return True
