"""What it costs this process to answer, and how much of it one subject may take.

Everything here runs on one thread: while one long answer is written, nobody else is served. So what is long is
written in slices, with a breath between two, and each subject's slices are counted: whoever takes more than its share
of the process waits, and at last is refused.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson

from gateway.problems import Problem
from gateway.rates import Buckets
from schemas.actor import Actor
from schemas.refusals import Refusal

T = TypeVar("T")
Owner = tuple[str, str]

SLICE_S = 0.004
# So many subjects' long answers are written at once, slice by slice.
LONG_ANSWERS_AT_ONCE = 4
# A message of a socket that takes longer counts as a long answer. What the many others take together is bounded more
# widely: they are the work that the gateway is there for.
LONG_MESSAGE_S = 0.002
MESSAGES_SHARE = 0.6
# The process is counted in milliseconds.
PER_S = 1_000.0
MESSAGES_BURST_S = 0.1


def owner_of(actor: Actor) -> Owner:
    """Whom an answer's cost is counted for."""
    return actor.tenant, actor.subject


class Work:
    """Counts, in seconds of the process, what each subject's answers cost."""

    def __init__(self, share: float, burst_s: float, patience_s: float) -> None:
        """Begin with nothing spent.

        Args:
            share: of the process, that one subject's long answers may take for ever.
            burst_s: seconds of the process that they may take at once.
            patience_s: how long its requests are delayed before they are refused.
        """
        self._share = share
        self._patience_s = patience_s
        self._long = Buckets(PER_S, burst_s / share)
        self._messages = Buckets(PER_S, MESSAGES_BURST_S / MESSAGES_SHARE)
        self._at_once = asyncio.Semaphore(LONG_ANSWERS_AT_ONCE)
        self._turns: dict[Owner, tuple[asyncio.Lock, int]] = {}

    def spend(self, owner: Owner, seconds: float) -> float:
        """Count what was done for a subject.

        Returns:
            After how many seconds more may be done for it.
        """
        return self._long.charge(owner, time.monotonic(), PER_S * seconds / self._share)

    def handled(self, owner: Owner, seconds: float) -> float:
        """Count one message of a socket; returns as `spend`."""
        if seconds > LONG_MESSAGE_S:
            return self.spend(owner, seconds)
        return self._messages.charge(owner, time.monotonic(), PER_S * seconds / MESSAGES_SHARE)

    async def admit(self, owner: Owner) -> None:
        """Let a subject that is beyond its share wait.

        Raises:
            Problem: 429 quota, it is far beyond.
        """
        wait_s = self.spend(owner, 0.0)
        if wait_s > self._patience_s:
            detail = "what this subject asks for takes more than its share of the gateway: ask for less"
            raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))
        if wait_s:
            await asyncio.sleep(wait_s)

    @asynccontextmanager
    async def turn(self, owner: Owner) -> AsyncIterator[None]:
        """Have one's turn: one long answer at a time for each subject, a few for all, and none on credit."""
        lock, waiting = self._turns.get(owner, (asyncio.Lock(), 0))
        self._turns[owner] = (lock, waiting + 1)
        try:
            async with lock:
                if wait_s := self.spend(owner, 0.0):
                    await asyncio.sleep(wait_s)
                async with self._at_once:
                    yield
        finally:
            _, waiting = self._turns[owner]
            if waiting == 1:
                del self._turns[owner]
            else:
                self._turns[owner] = (lock, waiting - 1)

    async def done(self, owner: Owner, work: Callable[[], T]) -> T:
        """Do something long on a thread, in the subject's turn; where it raises, so does this."""
        async with self.turn(owner):
            started = time.perf_counter()
            try:
                return await asyncio.to_thread(work)
            finally:
                self.spend(owner, time.perf_counter() - started)

    async def written(
        self, owner: Owner, rows: Iterable[T], item: Callable[[T], dict[str, Any]]
    ) -> AsyncGenerator[bytes, None]:
        """Rows as JSON, one after the other, in slices that let others through; to be read in the subject's turn."""
        started = time.perf_counter()
        for row in rows:
            yield orjson.dumps(item(row))
            elapsed = time.perf_counter() - started
            if elapsed > SLICE_S:
                self.spend(owner, elapsed)
                await asyncio.sleep(0)
                started = time.perf_counter()
        self.spend(owner, time.perf_counter() - started)
