"""How long one request may wait for the views: for its turns, and for their answers, together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from gateway.problems import Problem
from projections.queries.views import ANSWER_S
from schemas.refusals import Refusal

# A shorter wait behind others is not worth a word.
TOLD_FROM_S = 0.1


class ViewsWait:
    """The time that one request may still wait for the views.

    What it does between two waits, such as writing a page, does not count.
    """

    def __init__(self, within_s: float = ANSWER_S) -> None:
        """Begin with `within_s` seconds."""
        self._within_s = self._left_s = within_s
        self._behind_s = 0.0

    def renew(self) -> None:
        """Begin again: for what is read in many steps, each of which may take as long."""
        self._left_s, self._behind_s = self._within_s, 0.0

    @asynccontextmanager
    async def turn(self, turn: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
        """Wait for a turn behind earlier reads of the subject, and keep it for the duration of the context.

        Raises:
            Problem: 503, it did not come in time.
        """
        async with AsyncExitStack() as taken:
            async with self.answer(is_behind=True):
                await taken.enter_async_context(turn)
            yield

    @asynccontextmanager
    async def answer(self, *, is_behind: bool = False) -> AsyncIterator[None]:
        """Limit what waits for the views within the context; `is_behind`: behind earlier reads of the subject.

        Raises:
            Problem: 503, it took too long.
        """
        started = time.monotonic()
        try:
            try:
                async with asyncio.timeout(self._left_s):
                    yield
            finally:
                waited_s = time.monotonic() - started
                self._left_s = max(0.0, self._left_s - waited_s)
                self._behind_s += waited_s if is_behind else 0.0
        except TimeoutError as error:
            raise Problem(Refusal.UNAVAILABLE, self._told(), retry_after=1) from error

    def _told(self) -> str:
        earlier = f", of which this request has waited {self._behind_s:.1f} s for earlier ones of its subject"
        behind = earlier if self._behind_s >= TOLD_FROM_S else ""
        return f"the views have not answered for {self._within_s:g} s{behind}: try again in a moment"
