"""Notification of changes to single calls, holds and turns, and of turns for an agent's workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from gateway.live.facts import Fact
from gateway.live.turns import agent_of

Changed = Callable[[], None]


@dataclass(slots=True)
class Watch:
    """Callbacks by subject: a call is `(key, call_id)`, a hold its id, and the turns of an agent are its `Agent`.

    Attributes:
        is_closed: True if the gateway ends, and waiting is over.
    """

    _by_subject: dict[Hashable, list[Changed]] = field(default_factory=dict)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set)
    is_closed: bool = field(default=False, init=False)

    def add(self, subject: Hashable, changed: Changed) -> None:
        """Call back on every change of the subject, until removed."""
        self._by_subject.setdefault(subject, []).append(changed)

    def remove(self, subject: Hashable, changed: Changed) -> None:
        """Stop calling back; has no effect if it was already removed."""
        callbacks = self._by_subject.get(subject, [])
        if changed in callbacks:
            callbacks.remove(changed)
        if not callbacks:
            self._by_subject.pop(subject, None)

    def tell(self, fact: Fact) -> None:
        """Call the watchers of the fact's call and hold, and of what its agent's workers can take on."""
        if not self._by_subject:
            return
        if fact.call is not None:
            self.wake((fact.event.key, fact.call["call_id"]))
        if fact.hold is not None:
            self.wake(fact.hold["hold_id"])
        if fact.turn is not None:
            self.wake(agent_of(fact.turn))
        elif fact.execution is not None and fact.state_changed:
            self.wake(agent_of(fact.execution))

    def wake(self, subject: Hashable) -> None:
        """Call the watchers of a subject."""
        for changed in tuple(self._by_subject.get(subject, ())):
            changed()

    async def until(self, subject: Hashable, done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds that can become true only when the subject changes.

        Returns:
            True if it holds; False after `timeout_s`, or when the watch is closed.
        """
        if done() or self.is_closed:
            return done()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def changed() -> None:
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
        """End all waits, because the gateway ends."""
        self.is_closed = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
