"""Turns of callers: a limited number at a time for each, the others in the order of their arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """Turns by owner; an owner that has no turn and waits for none is forgotten."""

    def __init__(self, at_once: int) -> None:
        """Begin without owners; `at_once` is the number of turns that one owner can have at a time."""
        self._at_once = at_once
        self._owners: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def wanted(self, owner: Hashable) -> int:
        """Return how many turns an owner has or waits for."""
        return self._owners[owner][1] if owner in self._owners else 0

    @asynccontextmanager
    async def of(self, owner: Hashable) -> AsyncIterator[None]:
        """Wait for a turn of this owner, and keep it for the duration of the context."""
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
