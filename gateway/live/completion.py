"""The calls, holds and turns that began while neither the cache nor the views had their executions, fetched later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.live.cache import Incomplete, Kind
from gateway.live.reader import Reader, Subject
from gateway.live.turns import agent_of
from gateway.problems import Problem
from projections.folds.rows import Row
from schemas.ids import split_execution_key
from schemas.refusals import Refusal

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5


class NewRow(NamedTuple):
    """A row of which readers had no message."""

    kind: Kind
    row: Row


Completed = Callable[[Sequence[NewRow]], None]


@dataclass(slots=True)
class Completion:
    """Fetches what is incomplete as soon as the views have it.

    `completed` is called with the rows, some at a time.
    """

    reader: Reader
    completed: Completed

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self.reader.live.cache.incomplete:
                await self._pass()

    async def _pass(self) -> None:
        """Try each execution once. One in which much happens is not read in time, and must not keep the others."""
        by_key: dict[bytes, list[Incomplete]] = {}
        for one in self.reader.live.cache.incomplete:
            by_key.setdefault(one.key, []).append(one)
        found = list[NewRow]()
        for of_one in by_key.values():
            try:
                await self._complete(of_one, found)
            except Problem as problem:
                # It is tried again in the next pass. This took a while, for which readers need not wait.
                logger.info(
                    "%d rows of an execution are not in the views yet: %s", len(of_one), problem.detail
                )
                self._tell(found)
        self._tell(found)

    def _tell(self, found: list[NewRow]) -> None:
        if found:
            self.completed(found)
            found.clear()

    async def _complete(self, of_one: Sequence[Incomplete], found: list[NewRow]) -> None:
        """Complete the rows of one execution, and add them to those that were found; errors as `_fetched`."""
        # In the order in which they began: a hold is of a call, and a call of a turn.
        for one in of_one:
            row = await self._fetched(one)
            del self.reader.live.cache.incomplete[one]
            if row is not None:
                found.append(NewRow(one.kind, row))

    async def _fetched(self, one: Incomplete) -> Row | None:
        """Cache a row with its execution, and wake who waits for it.

        Raises:
            Problem: the views are away or behind.
        """
        tenant, project, execution_id = split_execution_key(one.key)
        try:
            await self.reader.read(Subject("execution", tenant, project, execution_id))
            subject = Subject(one.kind, tenant, project, "" if one.kind == "hold" else execution_id, one.id)
            row = await self.reader.read(subject)
        except Problem as problem:
            if problem.code is not Refusal.NOT_FOUND:
                raise
            # The views have read its event and have no row: whoever reads the log reports what is wrong with it.
            logger.error("the %s %s is missing in the views", one.kind, one.id)
            return None
        watch = self.reader.live.watch
        watch.wake((one.key, one.id) if one.kind == "call" else one.id)
        if one.kind == "turn":
            watch.wake(agent_of(row))
        return row
