"""The places of a worker: each claim and each turn under way takes one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# How long a claim may wait for a turn, in seconds: its place is free for others only afterwards.
LONG_S, SHARED_S = 30.0, 1.0


class Claim:
    """A claim that has its place."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.keeps = False

    def keep(self) -> None:
        """Keep the place for the turn that was claimed, until `Places.free`."""
        self.keeps = True


class Places:
    """The places of one worker.

    A claim of an agent that has nothing to do takes a place, too. It waits long only if each other agent could claim
    a turn as well, and there was a place left: otherwise agents take turns in claiming.
    """

    def __init__(self, count: int, agents: int) -> None:
        """Begin with all places free.

        Args:
            count: of places.
            agents: how many claim.
        """
        self._available = asyncio.Semaphore(count)
        self._left = count
        self._agents = self._not_claiming = agents

    @asynccontextmanager
    async def claim(self) -> AsyncIterator[Claim]:
        """Wait for a place, and take it for a claim."""
        await self._available.acquire()
        self._left -= 1
        self._not_claiming -= 1
        # With a single agent there is nobody to wait for the place.
        is_needed = self._agents > 1 and self._left <= self._not_claiming
        claim = Claim(SHARED_S if is_needed else LONG_S)
        try:
            yield claim
        except BaseException:
            self.free()
            raise
        else:
            if not claim.keeps:
                self.free()
        finally:
            self._not_claiming += 1

    def free(self) -> None:
        """Give back a place that was kept."""
        self._left += 1
        self._available.release()
