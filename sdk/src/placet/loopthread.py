"""One background thread with one event loop, for the synchronous client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from placet.errors import PlacetError

T = TypeVar("T")
STOP_S = 5.0
GIVE_UP_S = 1.0


class WrongProcess(PlacetError):
    """The client was made before a fork, and its thread stayed behind: make a client in this process."""


class LoopThread:
    """Runs coroutines for threads that wait for them."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="placet", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine on the loop.

        Raises:
            WrongProcess: this is a fork of the process that made the client.
            RuntimeError: the client is closed, or this is its own thread.
        """
        try:
            if os.getpid() != self._pid:
                raise WrongProcess("a client does not survive a fork: make a new one in the child process")
            if self._loop.is_closed():
                raise RuntimeError("the client is closed")
            if threading.current_thread() is self._thread:
                raise RuntimeError("the synchronous client can't be used on its own thread")
        except Exception:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; interrupting the waiting thread cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _serve(self) -> None:
        self._loop.run_forever()
        # What is left, such as a connection whose other side does not answer its end, is given up in order.
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=GIVE_UP_S))

    def stop(self) -> None:
        """Stop the loop and its thread; harmless when repeated."""
        if self._loop.is_closed() or os.getpid() != self._pid:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        if not self._thread.is_alive():
            self._loop.close()
