"""An event loop whose time is simulated: it jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
# A world in which so many callbacks run without time passing does not come to an end.
STILL_MAX = 200_000


class Stuck(RuntimeError):
    """The world cannot go on: everybody waits for nothing, or it turns without time passing."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order in which they became ready, and knows neither sockets nor threads."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._still = 0
        self._selector = self
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Simulated seconds since the world began."""
        return self._now_s

    def select(self, timeout: float | None) -> list[Any]:
        """What the base loop asks its selector when nothing is ready: let time pass."""
        if timeout is None:
            raise Stuck("nobody waits for a timer, and nothing is ready")
        self._still = 0 if timeout > 0 else self._still + 1
        if self._still > STILL_MAX:
            raise Stuck(f"{STILL_MAX} turns at {self._now_s} s")
        self._now_s += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing ever comes from outside."""

    def _write_to_self(self) -> None:
        """There is no other thread that could have to wake this one."""


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a world of its own."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main())
