"""The calls, holds and turns that began while neither the cache nor the views had their executions, fetched later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from gateway.live.cache import Incomplete
from gateway.live.reader import Reader, Subject
from gateway.live.turns import agent_of
from gateway.problems import Problem
from projections.folds.rows import Row
from schemas.ids import split_execution_key
from schemas.refusals import Refusal

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5

Completed = Callable[[str, Row], None]


@dataclass(slots=True)
class Completion:
    """Fetches what is incomplete as soon as the views have it.

    `completed` is called with a kind of row, and the row: readers had no message about it.
    """

    reader: Reader
    completed: Completed

    async def run(self) -> None:
        """Fetch until cancelled."""
        incomplete = self.reader.live.cache.incomplete
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for one in tuple(incomplete):
                if not await self._fetched(one):
                    break
                del incomplete[one]

    async def _fetched(self, one: Incomplete) -> bool:
        """Cache a row with its execution, and tell who waits for it; False if the views are away or behind."""
        tenant, project, execution_id = split_execution_key(one.key)
        try:
            await self.reader.read(Subject("execution", tenant, project, execution_id))
            subject = Subject(one.kind, tenant, project, "" if one.kind == "hold" else execution_id, one.id)
            row = await self.reader.read(subject)
        except Problem as problem:
            if problem.code is not Refusal.NOT_FOUND:
                return False
            # The views have read its event, and have no row: a reader of the log reports what is wrong with them.
            logger.error("the %s %s is missing in the views", one.kind, one.id)
            return True
        live = self.reader.live
        live.watch.wake((one.key, one.id) if one.kind == "call" else one.id)
        if one.kind == "turn":
            live.watch.wake(agent_of(row))
        self.completed(one.kind, row)
        return True
