"""One background thread with one event loop, for the synchronous client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from placet.errors import PlacetError

_log = logging.getLogger(__name__)
T = TypeVar("T")
Make = Callable[[], Coroutine[Any, Any, T]]
STOP_S = 5.0
GIVE_UP_S = 1.0


class WrongProcess(PlacetError):
    """The client was made before a fork, and its thread stayed behind: make a client in this process."""


class Step(Generic[T]):
    """A coroutine on the loop, for a thread that waits for it.

    A KeyboardInterrupt may leave the waiting thread between any two of its instructions, also where it holds the
    lock of a `concurrent.futures.Future`, which would stop the loop for good, or where it frees a task, which would
    lose the interrupt. So the two sides share a queue that is C alone, the coroutine is made on the loop, where
    nothing interrupts it before it is awaited, and its task stays there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()

    def start(self, make: Make[T]) -> None:
        """Have the coroutine made and started."""
        self._loop.call_soon_threadsafe(self._start, make)

    def result(self, within_s: float | None) -> T:
        """Wait for its end, and return or raise what it brought.

        Raises:
            TimeoutError: it has not ended in time.
            concurrent.futures.CancelledError: it was cancelled, as the client was closed.
        """
        try:
            end = self._ended.get(timeout=within_s)
        except queue.Empty:
            raise TimeoutError from None
        return end()

    def cancel(self) -> None:
        """Cancel it; harmless when it has ended or was never started."""
        # A closed loop has given up all that ran on it.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _start(self, make: Make[T]) -> None:
        self._task = self._loop.create_task(_awaited(make))
        self._task.add_done_callback(self._tell)

    def _tell(self, task: asyncio.Task[T]) -> None:
        self._task = None
        error = concurrent.futures.CancelledError() if task.cancelled() else task.exception()
        self._ended.put(partial(_raise, error) if error is not None else partial(_same, task.result()))

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _raise(error: BaseException) -> NoReturn:
    raise error


def _same(value: T) -> T:
    return value


async def _awaited(make: Make[T]) -> T:
    return await make()


def _quiet(make: Make[None]) -> Make[None]:
    """The same, for whom nobody waits: an error is told nobody but the log."""

    async def run() -> None:
        try:
            await make()
        except Exception:
            _log.debug("what was left behind did not end in order", exc_info=True)

    return run


class LoopThread:
    """Runs coroutines for other threads. It is given functions that make them, and calls these on its own thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._is_stopping = False
        self._behind: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="placet", daemon=True)
        self._thread.start()

    def run(self, make: Make[T], within_s: float | None = None) -> T:
        """Run a coroutine to its end; interrupting the waiting thread cancels it.

        Raises:
            TimeoutError: it did not end in time, and is cancelled.
            WrongProcess: this is a fork of the process that made the client.
            RuntimeError: the client is closed, or this is its own thread.
        """
        step: Step[T] = Step(self._usable())
        try:
            step.start(make)
            return step.result(within_s)
        except BaseException:
            step.cancel()
            raise

    def background(self, make: Make[None]) -> Step[None]:
        """Start a coroutine that nobody waits for; raises as `run`."""
        step: Step[None] = Step(self._usable())
        step.start(make)
        return step

    def future(self, make: Make[T]) -> concurrent.futures.Future[T]:
        """Start a coroutine for another event loop to await; raises as `run`."""
        return asyncio.run_coroutine_threadsafe(_awaited(make), self._usable())

    def soon(self, act: Callable[[], object]) -> None:
        """Have something done on the loop, after all that this thread has asked of it; nothing where it has ended."""
        if not self.has_ended():
            self._loop.call_soon_threadsafe(act)

    def settle(self, make: Make[None]) -> None:
        """Run what ends something: waited for where this thread may wait, and nothing where the loop has ended."""
        if self.has_ended():
            return
        if self.may_wait():
            self.run(make)
        else:
            self.soon(partial(self._keep, _quiet(make)))

    def may_wait(self) -> bool:
        """Whether this thread may wait: it is another one, and no event loop of its own would stand still."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return threading.current_thread() is not self._thread
        return False

    def stop_after(self, make: Make[None], within_s: float) -> None:
        """Have a coroutine run to its end, or for so long, and the thread end then; nobody waits."""
        self.soon(partial(self._keep, partial(self._stopping_after, make, within_s)))

    async def _stopping_after(self, make: Make[None], within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await _quiet(make)()
        except TimeoutError:
            _log.debug("a client that nobody held any more was not closed in time")
        finally:
            self._stop_here()

    def _keep(self, make: Make[None]) -> None:
        # The loop itself holds its tasks weakly.
        task = self._loop.create_task(_awaited(make))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def has_ended(self) -> bool:
        """Whether nothing runs here any more, or it runs in the process that this one is a fork of."""
        return os.getpid() != self._pid or self._loop.is_closed()

    def _usable(self) -> asyncio.AbstractEventLoop:
        if os.getpid() != self._pid:
            raise WrongProcess("a client does not survive a fork: make a new one in the child process")
        if self._loop.is_closed():
            raise RuntimeError("the client is closed")
        if threading.current_thread() is self._thread:
            raise RuntimeError("the synchronous client can't be used on its own thread")
        return self._loop

    def _serve(self) -> None:
        try:
            while not self._is_stopping:
                # Somebody's code may ask for the end here, such as a source of tokens. Its task has that as its
                # error, and whoever waits for it is told, on a thread of theirs.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_until_complete(_give_up())
        finally:
            self._loop.close()

    def stop(self) -> None:
        """Stop the loop, and wait for its thread to end unless it is this one; harmless when repeated."""
        if self.has_ended():
            return
        self._loop.call_soon_threadsafe(self._stop_here)
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_S)

    def _stop_here(self) -> None:
        # The loop forgets it where somebody's exit ends it in the same turn.
        self._is_stopping = True
        self._loop.stop()


async def _give_up() -> None:
    """Give up in order what is left, such as a connection whose other side does not answer its end."""
    # What another thread has just asked for is started first, so that it is cancelled and the thread goes on.
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=GIVE_UP_S)
