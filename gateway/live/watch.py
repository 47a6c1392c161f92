"""Who wants to know when one call or hold changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from gateway.live.facts import Fact

Changed = Callable[[Fact], None]


@dataclass(slots=True)
class Watch:
    """Callbacks by subject: a call is `(key, call_id)`, a hold its id.

    Attributes:
        is_closed: whether the gateway ends, and nobody waits any longer.
    """

    _by_subject: dict[Hashable, list[Changed]] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)
    is_closed: bool = field(default=False, init=False)

    def add(self, subject: Hashable, changed: Changed) -> None:
        """Call back on every change of the subject, until removed."""
        self._by_subject.setdefault(subject, []).append(changed)

    def remove(self, subject: Hashable, changed: Changed) -> None:
        """No longer call back; nothing happens where it was removed already."""
        callbacks = self._by_subject.get(subject, [])
        if changed in callbacks:
            callbacks.remove(changed)
        if not callbacks:
            self._by_subject.pop(subject, None)

    def tell(self, fact: Fact) -> None:
        """Call back whoever watches what the fact is about."""
        if not self._by_subject:
            return
        if fact.call is not None:
            self._tell((fact.event.key, fact.call["call_id"]), fact)
        if fact.hold is not None:
            self._tell(fact.hold["hold_id"], fact)

    async def until(self, subject: Hashable, done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something holds that can only come true when the subject changes.

        Returns:
            Whether it holds; False after `timeout_s`, or when the watch is closed.
        """
        if done() or self.is_closed:
            return done()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def changed(_: Fact) -> None:
            if not future.done() and done():
                future.set_result(None)

        self.add(subject, changed)
        self._waiting.add(future)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return done()
        finally:
            self.remove(subject, changed)
            self._waiting.discard(future)
        return done()

    def close(self) -> None:
        """Nobody waits any longer: the gateway ends."""
        self.is_closed = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _tell(self, subject: Hashable, fact: Fact) -> None:
        for changed in tuple(self._by_subject.get(subject, ())):
            changed(fact)
