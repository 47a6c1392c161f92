"""Turns of those who ask: so many at a time of each, the others in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """Turns by owner; who has none in hand and waits for none is forgotten."""

    def __init__(self, at_once: int) -> None:
        """Begin with nobody; `at_once` is how many turns one owner may have at a time."""
        self._at_once = at_once
        self._owners: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def wanted(self, owner: Hashable) -> int:
        """How many turns an owner has in hand or waits for."""
        return self._owners[owner][1] if owner in self._owners else 0

    @asynccontextmanager
    async def of(self, owner: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of this owner, and have it for as long as the context lasts."""
        turns, wanted = self._owners.get(owner, (asyncio.Semaphore(self._at_once), 0))
        self._owners[owner] = (turns, wanted + 1)
        try:
            async with turns:
                yield
        finally:
            _, wanted = self._owners[owner]
            if wanted == 1:
                del self._owners[owner]
            else:
                self._owners[owner] = (turns, wanted - 1)
