"""The events of one iteration in a coroutine: a wait that is cancelled, as by a timeout, loses nothing."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress

from placet.consuming.events import LogEvent

_ENDING: set[asyncio.Task[None]] = set()


class _Steps:
    """The steps of a generator of events, one at a time, as tasks of their own.

    Attributes:
        is_over: True once the generator has ended, also by an error.
    """

    def __init__(self, events: AsyncGenerator[LogEvent, None]) -> None:
        self._events = events
        self._step: asyncio.Task[LogEvent] | None = None
        self._is_awaited = False
        self.is_over = False

    async def next(self) -> LogEvent:
        if self._is_awaited:
            raise RuntimeError("another task waits for the next event")
        if self._step is None:
            self._step = asyncio.ensure_future(self._one())
        step, self._is_awaited = self._step, True
        try:
            # Cancelled, this leaves the step as it is: the next wait is for the same step.
            await asyncio.wait((step,))
        finally:
            self._is_awaited = False
        self._step = None
        self.is_over = step.cancelled() or step.exception() is not None
        return step.result()

    async def end(self) -> None:
        """End the generator, and raise the error of a step whose result nobody got."""
        step, self._step = self._step, None
        try:
            if step is not None:
                step.cancel()
                await asyncio.wait((step,))
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    step.result()
        finally:
            await self._events.aclose()

    async def _one(self) -> LogEvent:
        return await anext(self._events)


class Events:
    """The events of a consumer, for `async for`; they are read until `aclose`, best called by `contextlib.aclosing`.

    A wait for the next event may be cancelled: that event is given to whoever waits next. One task waits at a time.
    """

    def __init__(self, events: AsyncGenerator[LogEvent, None]) -> None:
        """Made where the loop runs."""
        self._steps = _Steps(events)
        forgotten = weakref.finalize(self, _end_forgotten, asyncio.get_running_loop(), self._steps)
        # The end of the interpreter ends the connections as well.
        forgotten.atexit = False
        self._forgotten = forgotten

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> LogEvent:
        try:
            return await self._steps.next()
        finally:
            if self._steps.is_over:
                self._forgotten.detach()

    async def aclose(self) -> None:
        """Close the connections, and save the position of what was handled.

        Raises:
            CheckpointNotSaved: the checkpoint's file cannot be written.
        """
        self._forgotten.detach()
        await self._steps.end()


def _end_forgotten(loop: asyncio.AbstractEventLoop, steps: _Steps) -> None:
    """End what a loop was left at without `aclose`, as soon as the event loop gets to it."""
    with suppress(RuntimeError):
        # The loop can be closed by now, and has ended the generator then.
        loop.call_soon_threadsafe(_begin_end, loop, steps)


def _begin_end(loop: asyncio.AbstractEventLoop, steps: _Steps) -> None:
    task = loop.create_task(steps.end())
    _ENDING.add(task)
    task.add_done_callback(_ENDING.discard)
