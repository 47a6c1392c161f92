"""Who may read the log for the past of a reader, and when: a place among those that wait, and turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from gateway.problems import Problem
from gateway.pushes.hub import Receiver
from gateway.shares.turns import Turns
from gateway.shares.work import Owner, owner_of
from schemas.refusals import Refusal

TURNS = 2
# Of these, one subject has one at a time: with several long readers it takes no more of the others' turns.
TURNS_OF_ONE = 1
WAITING_MAX = 256
WAITING_OF_ONE_MAX = 8


@dataclass(slots=True)
class ReadingTurns:
    """The places and turns of one gateway.

    Attributes:
        shared: the turns of all subjects, for work that ends within one turn.
    """

    shared: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TURNS))
    _of_one: Turns = field(default_factory=lambda: Turns(TURNS_OF_ONE))
    _waiting: Counter[Owner] = field(default_factory=Counter)

    def __len__(self) -> int:
        return self._waiting.total()

    @contextmanager
    def place(self, receiver: Receiver) -> Iterator[None]:
        """Take a place among the readers that catch up.

        Raises:
            Problem: there are too many, of this subject or in total.
        """
        owner = owner_of(receiver.actor)
        if self._waiting[owner] >= WAITING_OF_ONE_MAX:
            raise Problem(Refusal.QUOTA, "too many of your connections are catching up", retry_after=1)
        if len(self) >= WAITING_MAX:
            raise Problem(Refusal.UNAVAILABLE, "too many clients are catching up: try again", retry_after=1)
        self._waiting[owner] += 1
        try:
            yield
        finally:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner]

    @asynccontextmanager
    async def turn(self, receiver: Receiver) -> AsyncIterator[None]:
        """Wait for a turn, first among the readers of the same subject; keep it for the duration of the context."""
        async with self._of_one.of(owner_of(receiver.actor)), self.shared:
            yield
