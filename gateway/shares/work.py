"""The processor time that answers cost this process, and the share of it that one subject can take.

Everything here runs on one thread: while one long answer is written, no other request is served. So long answers are
written in slices, with a pause between two, and each subject's slices are counted: a subject that takes more than its
share of the process is delayed, and finally refused.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

import orjson

from gateway.problems import Problem
from gateway.shares.rates import Buckets
from gateway.shares.turns import Turns
from gateway.shares.views_wait import ViewsWait
from schemas.actor import Actor
from schemas.refusals import Refusal

T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")
P = ParamSpec("P")
Owner = tuple[str, str]

SLICE_S = 0.004
# The long answers of this many subjects are written at once, slice by slice.
LONG_ANSWERS_AT_ONCE = 4
# One subject can use at most half of the few connections to the views.
QUESTIONS_AT_ONCE = 2
# A message of a socket that takes longer counts as a long answer. All shorter messages together, with everything that
# is read from sockets, have a larger share: they are the gateway's main work.
LONG_MESSAGE_S = 0.002
MESSAGES_SHARE = 0.6
# The buckets count in milliseconds of the process.
PER_S = 1_000.0
MESSAGES_BURST_S = 0.1
# The share of what is sent to the sockets and streams of one subject. While it waits, more is sent in one write.
SENT_SHARE = 0.4
SENT_BURST_S = 1.0
# By the wall clock, each subject would pay for the time that other processes on the machine take in between.
processor_s = time.thread_time


def owner_of(actor: Actor) -> Owner:
    """Return the owner that an actor's costs are counted for."""
    return actor.tenant, actor.subject


class Work:
    """Counts, in seconds of the processor, the cost of each subject's answers."""

    def __init__(self, share: float, burst_s: float, patience_s: float) -> None:
        """Begin with nothing spent.

        Args:
            share: the share of the process that one subject's long answers can take permanently.
            burst_s: seconds of the process that they can take at once.
            patience_s: how long its requests are delayed before they are refused.
        """
        self._share = share
        self._patience_s = patience_s
        self._long = Buckets(PER_S, burst_s / share)
        self._messages = Buckets(PER_S, MESSAGES_BURST_S / MESSAGES_SHARE)
        self._sent = Buckets(PER_S, SENT_BURST_S / SENT_SHARE)
        self._at_once = asyncio.Semaphore(LONG_ANSWERS_AT_ONCE)
        self._turns = Turns(1)
        self._questions = Turns(QUESTIONS_AT_ONCE)
        self._lookups = Turns(QUESTIONS_AT_ONCE)
        self._pages = Turns(QUESTIONS_AT_ONCE)
        self._written_s = 0.0

    def spend(self, owner: Owner, seconds: float) -> float:
        """Count work for a subject.

        Returns:
            The seconds until more work can be done for it.
        """
        return self._long.charge(owner, time.monotonic(), PER_S * seconds / self._share)

    def handled(self, owner: Owner, seconds: float) -> float:
        """Count one message of a socket; returns as `spend`."""
        if seconds > LONG_MESSAGE_S:
            return self.spend(owner, seconds)
        return self.received(owner, seconds)

    def received(self, owner: Owner, seconds: float) -> float:
        """Count what it takes to read a socket's input, of which a message is a part; returns as `spend`."""
        return self._messages.charge(owner, time.monotonic(), PER_S * seconds / MESSAGES_SHARE)

    async def admit(self, owner: Owner) -> None:
        """Delay a subject that is beyond its share.

        Raises:
            Problem: 429 quota, it is far beyond its share.
        """
        wait_s = self.spend(owner, 0.0)
        if wait_s > self._patience_s:
            detail = "the requests of this subject take more than its share of the gateway: send fewer"
            raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))
        if wait_s:
            await asyncio.sleep(wait_s)

    @asynccontextmanager
    async def turn(self, owner: Owner) -> AsyncIterator[None]:
        """Take a turn: one long answer at a time for each subject, a few in total, and none for a subject in debt."""
        async with self._turns.of(owner):
            await self.paid(owner)
            async with self._at_once:
                yield

    async def paid(self, owner: Owner) -> None:
        """Wait until a subject has paid for what is over its share."""
        await _until_paid(self._long, owner)

    async def asked(
        self,
        owner: Owner,
        read: Callable[[Callable[[M], T]], Awaitable[R]],
        ask: Callable[[M], T],
        wait: ViewsWait,
    ) -> R:
        """Query the views, a few queries at a time for each subject, and count the cost.

        Raises:
            Problem: 503, the time that the request may wait is over.
        """
        with self._counting(owner) as timed:
            async with wait.turn(self._questions.of(owner)), wait.answer():
                return await read(timed(ask))

    async def looked_up(
        self, owner: Owner, read: Callable[[Callable[[M], T]], Awaitable[R]], ask: Callable[[M], T]
    ) -> R:
        """Look a row up in the views: as `asked`, but not behind the subject's long queries.

        Raises:
            Problem: as `admit`; those of `read`.
        """
        with self._counting(owner) as timed:
            async with self._lookups.of(owner):
                await self.admit(owner)
                return await read(timed(ask))

    @asynccontextmanager
    async def page(self, owner: Owner, wait: ViewsWait) -> AsyncIterator[None]:
        """Take a turn to read a page of the views and to write it, a few at a time for each subject.

        Raises:
            Problem: 503, the subject's earlier pages have not been answered in time.
        """
        async with wait.turn(self._pages.of(owner)):
            yield

    async def done(self, owner: Owner, work: Callable[[], T]) -> T:
        """Run long work on a thread, in the subject's turn; its exceptions are raised here."""
        async with self.turn(owner):
            return await self.counted(owner, work)

    async def counted(self, owner: Owner, work: Callable[[], T]) -> T:
        """Run work on a thread and count its processor time, whether or not it raises.

        If the caller is cancelled, this still waits for the end of the work, which cannot be stopped.
        """
        with self._counting(owner) as timed:
            working = asyncio.ensure_future(asyncio.to_thread(timed(work)))
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait((working,))
                if not working.cancelled():
                    # Nobody is there to be told.
                    working.exception()
                raise

    async def priced(self, owner: Owner, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and count each step between two of its waits that takes long."""
        return await _Steps(work, lambda step: self._stepped(owner, step))

    async def sent(self, owner: Owner, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Write to one socket or stream, and count all steps of the coroutine that does it; see `may_send`."""
        return await _Steps(send(), lambda step: self._sent_in(owner, step))

    def handed(self, owner: Owner, seconds: float) -> None:
        """Count that a message was handed to many sockets and streams of a subject.

        Others cause it. So what it is sent waits, and is written together; but its requests are delayed by it for no
        longer than the patience, and never refused.
        """
        self._sent.charge(owner, time.monotonic(), PER_S * seconds / SENT_SHARE)
        if self.spend(owner, 0.0) < self._patience_s / 2:
            self.spend(owner, seconds)

    async def may_send(self, owner: Owner) -> None:
        """Wait until a subject has paid for what its sockets and streams were sent."""
        await _until_paid(self._sent, owner)

    def _sent_in(self, owner: Owner, step: Callable[[], R]) -> R:
        started = processor_s()
        try:
            return step()
        finally:
            tokens = PER_S * (processor_s() - started) / SENT_SHARE
            self._sent.charge(owner, time.monotonic(), tokens)

    def _stepped(self, owner: Owner, step: Callable[[], R]) -> R:
        """Run one step; the time that it has written in slices is already counted."""
        started, written_s = processor_s(), self._written_s
        try:
            return step()
        finally:
            self.noted(owner, processor_s() - started - (self._written_s - written_s))

    def noted(self, owner: Owner, seconds: float) -> None:
        """Count long work on the loop for a subject; short work is limited by the rate of requests."""
        if seconds > LONG_MESSAGE_S:
            self.spend(owner, seconds)

    @contextmanager
    def _counting(self, owner: Owner) -> Iterator[Callable[[Callable[P, T]], Callable[P, T]]]:
        """Yield a wrapper for functions: their time on their thread is charged to the owner when the context ends."""
        took_s = 0.0

        def timed(work: Callable[P, T]) -> Callable[P, T]:
            def run(*args: P.args, **kwargs: P.kwargs) -> T:
                nonlocal took_s
                started = processor_s()
                try:
                    return work(*args, **kwargs)
                finally:
                    took_s = processor_s() - started

            return run

        try:
            yield timed
        finally:
            self.spend(owner, took_s)

    async def written(
        self, owner: Owner, rows: Iterable[T], item: Callable[[T], dict[str, Any]]
    ) -> AsyncGenerator[bytes, None]:
        """Yield rows as JSON, in slices between which others are served; to be used in the subject's turn."""
        started = processor_s()
        for row in rows:
            yield orjson.dumps(item(row))
            elapsed = processor_s() - started
            if elapsed > SLICE_S:
                self._wrote(owner, elapsed)
                await asyncio.sleep(0)
                started = processor_s()
        self._wrote(owner, processor_s() - started)

    def _wrote(self, owner: Owner, seconds: float) -> None:
        self._written_s += seconds
        self.spend(owner, seconds)


async def _until_paid(buckets: Buckets, owner: Owner) -> None:
    wait_s = buckets.charge(owner, time.monotonic(), 0.0)
    while wait_s:
        await asyncio.sleep(wait_s)
        # Other work for it may have added to its debt.
        wait_s = buckets.charge(owner, time.monotonic(), 0.0)


class _Steps(Awaitable[T]):
    """A coroutine whose steps, each from one of its waits to the next, are run by a given function."""

    def __init__(self, work: Coroutine[Any, Any, T], make: Callable[[Callable[[], Any]], Any]) -> None:
        self._work = work
        self._make = make

    def __await__(self) -> Generator[Any, Any, T]:
        step = partial(self._work.send, None)
        while True:
            try:
                waited_for = self._make(step)
            except StopIteration as ended:
                result: T = ended.value
                return result
            try:
                step = partial(self._work.send, (yield waited_for))
            except BaseException as error:
                # For example, it was cancelled: the coroutine must handle it.
                step = partial(self._work.throw, error)
