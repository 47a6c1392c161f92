"""The worker's one appender, replaced as soon as the outcome of an append is unknown."""

import asyncio
from dataclasses import dataclass, field

from log.port import Appender, Log


@dataclass(slots=True)
class Appenders:
    """Provides the appender that all partitions of a worker share.

    With one connection the client can put many partitions' batches into one request. The price is that after a
    failure all partitions claim again, which is rare and safe.
    """

    log: Log
    _current: Appender | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self) -> Appender:
        """A usable appender, opened if needed."""
        async with self._lock:
            if self._current is None:
                self._current = await self.log.appender()
            return self._current

    async def spoiled(self, appender: Appender) -> None:
        """Discard an appender whose last outcome is unknown."""
        async with self._lock:
            if self._current is appender:
                self._current = None
                await appender.abandon()

    async def close(self) -> None:
        """Close the open appender, if any."""
        async with self._lock:
            if self._current is not None:
                await self._current.abandon()
                self._current = None
