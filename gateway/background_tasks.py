"""The gateway's permanent parts: if one ends, the gateway ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class BackgroundTasks:
    """Tasks that only `stop` may end.

    Attributes:
        failure: why the first of them ended by itself; None while all run.
    """

    failure: BaseException | None = None
    _ended: Callable[[], None] = lambda: None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _failed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_failure(self, tell: Callable[[], None]) -> None:
        """Call `tell` as soon as a part ends."""
        self._ended = tell

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a part."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._fail)
        self._tasks.append(task)

    async def wait_failed(self) -> None:
        """Wait until a part has ended by itself."""
        await self._failed.wait()

    async def stop(self) -> None:
        """End all parts."""
        for task in self._tasks:
            task.remove_done_callback(self._fail)
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                logger.critical("a part of the gateway failed as it was stopped: %s", ended)
                self.failure = self.failure or ended

    def _fail(self, task: asyncio.Task[None]) -> None:
        # A library's own CancelledError also ends a part, and contains no reason.
        raised = None if task.cancelled() else task.exception()
        ended = raised or RuntimeError("a part of the gateway ended")
        self.failure = self.failure or ended
        logger.critical("the gateway cannot go on: %s", ended)
        self._failed.set()
        self._ended()
