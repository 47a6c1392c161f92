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
End = Callable[[], T]
STOP_S = 5.0
GIVE_UP_S = 1.0


class WrongProcess(PlacetError):
    """The client was made before a fork, which has no copy of its thread: make a client in this process."""


class RequestedLoop:
    """An event loop with the steps that other threads have requested of it: each is answered, also at its end.

    Attributes:
        is_over: True once it starts nothing more.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # Changed by several threads, by one instruction each time.
        self._requested: set[Step[Any]] = set()
        self.is_over = False

    def request(self, step: Step[Any], start: Callable[[], None]) -> None:
        """Start a step on the loop, or give it up if the loop is over by then.

        Raises:
            RuntimeError: the loop is closed.
        """
        self._requested.add(step)
        try:
            self.loop.call_soon_threadsafe(self._start, step, start)
        except RuntimeError:
            self._requested.discard(step)
            raise

    def answered(self, step: Step[Any]) -> None:
        """Note that a step has ended."""
        self._requested.discard(step)

    def soon(self, act: Callable[[], object]) -> None:
        """Call a function on the loop after this thread's earlier requests; does nothing if the loop is closed."""
        # It can be closed at any moment.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(act)

    def close(self) -> None:
        """Cancel what is left, as far as that is possible within a second or so, and close the loop."""
        give_up_at = self.loop.time() + GIVE_UP_S
        is_quiet = False
        try:
            while not is_quiet and self.loop.time() < give_up_at + GIVE_UP_S:
                with suppress(SystemExit, KeyboardInterrupt):
                    is_quiet = self.loop.run_until_complete(self._give_up(give_up_at))
        finally:
            self.loop.close()
            # From now on nothing more can be requested: these were too late, or did not end in time.
            with suppress(KeyError):
                while True:
                    self._requested.pop().give_up()

    def _start(self, step: Step[Any], start: Callable[[], None]) -> None:
        # A task that is made now would not begin before the loop is closed.
        if not self.is_over:
            start()

    async def _give_up(self, at: float) -> bool:
        """Cancel the remaining tasks, such as a connection whose other side does not answer the close; return True.

        Args:
            at: when those that have not ended yet are left, by the loop's clock.
        """
        while True:
            # First start what other threads have just requested, so that it is cancelled and those threads go on.
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if not left or self.loop.time() >= at:
                break
            # What ends can have started something else meanwhile.
            await asyncio.wait(left, timeout=at - self.loop.time())
        self.is_over = True
        # Generators that were not run to their end are closed by tasks that the loop would otherwise no longer run.
        with suppress(TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                await self.loop.shutdown_asyncgens()
        return True


class Step(Generic[T]):
    """A coroutine on the loop, for a thread that waits for it.

    A KeyboardInterrupt can occur in the waiting thread between any two instructions: also while it holds the lock of
    a `concurrent.futures.Future`, which would block the loop for ever, or while it frees a task, which would lose the
    interrupt. So the two sides share a queue that is implemented in C, the coroutine is created on the loop, where
    nothing interrupts it before it is awaited, and its task stays there.
    """

    def __init__(self, loop: RequestedLoop, tell: Callable[[End[T]], None] | None = None) -> None:
        """A step that is not started yet.

        Args:
            loop: the loop.
            tell: called once with what returns the result or raises the error, by default for `result`.
        """
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self._ended: queue.SimpleQueue[End[T]] = queue.SimpleQueue()
        self._tell = self._ended.put if tell is None else tell

    def start(self, make: Make[T]) -> None:
        """Create and start the coroutine on the loop.

        Raises:
            RuntimeError: the loop is closed.
        """
        self._loop.request(self, partial(self._start, make))

    def result(self, within_s: float | None) -> T:
        """Wait for the coroutine's end, and return its result or raise its error.

        Raises:
            TimeoutError: it has not ended in time.
            concurrent.futures.CancelledError: it was cancelled because the client was closed.
        """
        try:
            end = self._ended.get(timeout=within_s)
        except queue.Empty:
            raise TimeoutError from None
        return end()

    def cancel(self) -> None:
        """Cancel the coroutine; does nothing if it has ended or was never started."""
        self._loop.soon(self._cancel)

    def give_up(self) -> None:
        """Tell the waiting thread that the loop is closed: the coroutine does not end, or was never started."""
        self._tell(partial(_raise, concurrent.futures.CancelledError()))

    def _start(self, make: Make[T]) -> None:
        self._task = self._loop.loop.create_task(_awaited(make))
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[T]) -> None:
        self._task = None
        self._loop.answered(self)
        error = concurrent.futures.CancelledError() if task.cancelled() else task.exception()
        self._tell(partial(_raise, error) if error is not None else partial(_same, task.result()))

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _raise(error: BaseException) -> NoReturn:
    raise error


def _same(value: T) -> T:
    return value


def _settle(future: concurrent.futures.Future[T], end: End[T]) -> None:
    """Give a future the result or error of a step, unless it was cancelled meanwhile."""
    try:
        result = end()
    except concurrent.futures.CancelledError:
        future.cancel()
        future.set_running_or_notify_cancel()
    except BaseException as error:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(result)


async def _awaited(make: Make[T]) -> T:
    return await make()


def _quiet(make: Make[None]) -> Make[None]:
    """The same coroutine without a waiting caller: its errors are only logged.

    It closes connections, and streams that are read: if that fails, nothing that the caller has sent is lost.
    """

    async def run() -> None:
        try:
            await make()
        except Exception:
            _log.debug("a task that nobody waited for failed", exc_info=True)

    return run


class LoopThread:
    """Runs coroutines for other threads. It takes functions that make them, and calls these on its own thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = RequestedLoop()
        self._is_stopping = False
        self._behind: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="placet", daemon=True)
        self._thread.start()

    def run(self, make: Make[T], within_s: float | None = None) -> T:
        """Run a coroutine to its end; interrupting the waiting thread cancels it.

        Raises:
            TimeoutError: it did not end in time and is cancelled.
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

    def run_and_end(self, make: Make[T], within_s: float) -> T:
        """As `run`, but an interrupt waits for the end of the cancelled coroutine, for at most this long."""
        step: Step[T] = Step(self._usable())
        try:
            step.start(make)
            return step.result(None)
        except (KeyboardInterrupt, SystemExit):
            step.cancel()
            with suppress(concurrent.futures.CancelledError, TimeoutError):
                step.result(within_s)
            raise

    def background(self, make: Make[None]) -> Step[None]:
        """Start a coroutine in the background; raises as `run`."""
        step: Step[None] = Step(self._usable())
        step.start(make)
        return step

    def future(self, make: Make[T]) -> concurrent.futures.Future[T]:
        """Start a coroutine for another event loop to await; raises as `run`."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        step = Step(self._usable(), partial(_settle, future))

        def ended(future: concurrent.futures.Future[T]) -> None:
            if future.cancelled():
                step.cancel()

        future.add_done_callback(ended)
        step.start(make)
        return future

    def soon(self, act: Callable[[], object]) -> None:
        """Call a function on the loop after this thread's earlier requests; does nothing if the loop has ended."""
        if not self.has_ended():
            self._loop.soon(act)

    def settle(self, make: Make[None]) -> None:
        """Run a closing coroutine; waits if this thread may wait, and does nothing if the loop has ended."""
        if self.has_ended():
            return
        if self.may_wait():
            self.run(make)
        else:
            self.soon(partial(self._keep, _quiet(make)))

    def may_wait(self) -> bool:
        """Returns True if this thread may wait: it is not the loop's own thread, and it runs no event loop itself."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return threading.current_thread() is not self._thread
        return False

    def stop_after(self, make: Make[None], within_s: float) -> None:
        """Run a coroutine to its end, or for at most this long, then stop the thread; does not wait."""
        self.soon(partial(self._keep, partial(self._stopping_after, make, within_s)))

    async def _stopping_after(self, make: Make[None], within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await _quiet(make)()
        except TimeoutError:
            _log.debug("a client that was no longer referenced was not closed in time")
        finally:
            self._stop_here()

    def _keep(self, make: Make[None]) -> None:
        if self._loop.is_over:
            return
        # The loop itself keeps only weak references to its tasks.
        task = self._loop.loop.create_task(_awaited(make))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def has_ended(self) -> bool:
        """Returns True if the loop is closed, or runs in the parent process of this fork."""
        return self.is_of_parent() or self._loop.loop.is_closed()

    def is_of_parent(self) -> bool:
        """Returns True if this is a fork of the process that runs the loop."""
        return os.getpid() != self._pid

    def _usable(self) -> RequestedLoop:
        if self.is_of_parent():
            raise WrongProcess("a client does not survive a fork: make a new one in the child process")
        if self._loop.loop.is_closed():
            raise RuntimeError("the client is closed")
        if threading.current_thread() is self._thread:
            raise RuntimeError("the synchronous client can't be used on its own thread")
        return self._loop

    def _serve(self) -> None:
        try:
            while not self._is_stopping:
                # The user's code, such as a source of tokens, may raise SystemExit here. Its task has that as its
                # error, and the thread that waits for the task raises it.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.loop.run_forever()
        finally:
            self._loop.close()

    def stop(self) -> None:
        """Stop the loop, and wait for its thread to end unless it is this one; can be repeated."""
        if self.has_ended():
            return
        self._loop.soon(self._stop_here)
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_S)

    def _stop_here(self) -> None:
        if self._is_stopping:
            # What is given up must not be stopped.
            return
        # The flag is needed because the loop forgets `stop` if a SystemExit ends it in the same iteration.
        self._is_stopping = True
        self._loop.loop.stop()
