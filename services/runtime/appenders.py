"""The worker's one appender, replaced as soon as it is spoiled."""

import asyncio
from dataclasses import dataclass, field

from log.port import Appender, Log


@dataclass(slots=True)
class Appenders:
    """Hands out the appender that all partitions of a worker share.

    One connection for all lets the client put many partitions' batches into one request; the price is that a
    failure makes all of them claim again, which is rare and safe.
    """

    log: Log
    _current: Appender | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self) -> Appender:
        """A good appender, opened when needed."""
        async with self._lock:
            if self._current is None:
                self._current = await self.log.appender()
            return self._current

    async def spoiled(self, appender: Appender) -> None:
        """Let go of an appender whose last outcome is unknown."""
        async with self._lock:
            if self._current is appender:
                self._current = None
                await appender.abandon()

    async def close(self) -> None:
        """Let go of whatever is open."""
        async with self._lock:
            if self._current is not None:
                await self._current.abandon()
                self._current = None
