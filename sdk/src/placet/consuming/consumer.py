"""One consumer: filters what its source yields, and keeps the position of what was handled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from placet.blocking import followed
from placet.client_finalizer import ClientFinalizer
from placet.consuming.checkpoints import Checkpoint, Keeper
from placet.consuming.events import LogEvent, Reached
from placet.consuming.iterating import Events
from placet.consuming.source import Source
from placet.loopthread import LoopThread

Steps = AsyncGenerator[Sequence[Reached], None]


@dataclass(frozen=True)
class Consumer:
    """What `placet.consume` returns: iterate over it with `for`, or in a coroutine with `async for`.

    Each iteration begins at the checkpoint, and has connections of its own until it ends.
    """

    _source: Callable[[], Source] = field(repr=False)
    _start: str
    _checkpoint: Checkpoint | None
    _follow: bool

    def __aiter__(self) -> Events:
        return Events(self._events(self._source()))

    def __iter__(self) -> Generator[LogEvent, None, None]:
        thread = LoopThread()
        try:
            source = thread.run(self._made)
        except BaseException:
            thread.stop()
            raise
        finalizer = ClientFinalizer(source, thread)
        try:
            yield from followed(thread, finalizer, self._events(source))
        finally:
            finalizer.end()

    async def _made(self) -> Source:
        return self._source()

    async def _events(self, source: Source) -> AsyncGenerator[LogEvent, None]:
        try:
            async with aclosing(Keeper(self._checkpoint)) as keeper:
                saved = await keeper.load()
                start = self._start if saved is None else saved
                async with aclosing(source.reached(start, follow=self._follow)) as steps:
                    while (step := await _next(steps, keeper)) is not None:
                        for reached in step:
                            if reached.event is not None and await source.wants(reached.event):
                                yield reached.event
                            # The program has asked for the next event: it is done with this one.
                            await keeper.reached(reached.cursor)
        finally:
            await source.close()


async def _next(steps: Steps, keeper: Keeper) -> Sequence[Reached] | None:
    """The next events; None at the end. While they do not come, the position of those before is saved."""
    step = asyncio.ensure_future(_step(steps))
    try:
        while not (await asyncio.wait((step,), timeout=keeper.due_in_s()))[0]:
            await keeper.save()
    except BaseException:
        step.cancel()
        await asyncio.wait((step,))
        raise
    return step.result()


async def _step(steps: Steps) -> Sequence[Reached] | None:
    return await anext(steps, None)
