"""The threads on which an asynchronous run runs functions that block.

A call takes its thread before it consumes its grant: between the consumption and the function it never waits for one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
THREADS = 32
# A release that nobody consumes expires after 15 minutes. A call without a place keeps its lease while it waits.
RESERVED_WITHIN_S = 600.0
# The number of places is the bound. A thread is told to be free a moment after its place is.
POOL_MAX = 10_000


class Threads:
    """The threads of one client, with a place for each; used on its event loop only."""

    def __init__(self, most: int = THREADS) -> None:
        self.most = most
        self.free = asyncio.Semaphore(most)
        self.pool = ThreadPoolExecutor(POOL_MAX, thread_name_prefix="placet-call")

    def at_least(self, most: int) -> None:
        """Have this many places, or as many as there are if that is more."""
        while self.most < most:
            self.most += 1
            self.free.release()


class ThreadsByLoop:
    """The threads of one client: those of each event loop that it is used on, and none of a process's parent."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, Threads] = WeakKeyDictionary()

    def here(self) -> Threads:
        """The threads of the running event loop, in this process."""
        if self._pid != os.getpid():
            self._pid, self._of = os.getpid(), WeakKeyDictionary()
        loop = asyncio.get_running_loop()
        if loop not in self._of:
            self._of[loop] = Threads()
        return self._of[loop]


class Place:
    """The place of one call. Without threads, its function needs none."""

    def __init__(self, threads: Threads | None = None) -> None:
        self._threads = threads
        self._is_taken = threads is None

    async def taken_if_free(self) -> bool:
        """Take a place if one is free now, and return True if this call has one."""
        if self._threads is not None and not self._is_taken and not self._threads.free.locked():
            await self._take(None)
        return self._is_taken

    async def reserve(self) -> None:
        """Take a place before the grant is consumed; returns without one before the grant expires."""
        with suppress(TimeoutError, asyncio.TimeoutError):
            await self._take(RESERVED_WITHIN_S)

    async def _take(self, within_s: float | None) -> None:
        if self._threads is not None and not self._is_taken:
            async with asyncio.timeout(within_s):
                await self._threads.free.acquire()
            self._is_taken = True

    def leave(self) -> None:
        """Give the place back; can be repeated."""
        if self._threads is not None and self._is_taken:
            self._is_taken = False
            self._threads.free.release()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function on a thread, in this context; the place is free once it has ended."""
        assert self._threads is not None
        try:
            work: Future[T] = Future()
            try:
                self._threads.pool.submit(_work, work, partial(copy_context().run, function))
            except RuntimeError:
                # No thread could be started, but the pool keeps the function for a thread that is busy now.
                if work.cancel():
                    raise
            return await asyncio.wrap_future(work)
        finally:
            self.leave()


def _work(work: Future[T], function: Callable[[], T]) -> None:
    """Run a function for a future, unless that was cancelled."""
    if not work.set_running_or_notify_cancel():
        return
    try:
        work.set_result(function())
    except BaseException as error:  # whoever waits for it gets it
        work.set_exception(error)
