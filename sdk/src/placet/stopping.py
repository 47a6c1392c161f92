"""What the function of an agent waits for on a thread, until its turn is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TurnStopped(BaseException):
    """The worker is being stopped, or another one has the turn: this function must end, as a cancelled one does.

    It is raised where the function waits for a person, or begins to. It is no `Exception`, so that a function which
    goes on after errors ends, too.
    """


class Stop:
    """Ends what is waited for, and refuses what would be waited for afterwards; used on the client's loop only."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def set(self) -> None:
        """Stop."""
        self._is_set = True
        for task in self._waiting:
            task.cancel()

    async def before(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await what `make` returns, unless it is stopped before.

        Raises:
            TurnStopped: it was.
        """
        if self._is_set:
            raise TurnStopped
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            return await make()
        except asyncio.CancelledError:
            if self._is_set:
                raise TurnStopped from None
            raise
        finally:
            self._waiting.discard(task)
