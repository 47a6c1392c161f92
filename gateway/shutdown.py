"""The shutdown of a gateway: waiting requests are answered at once, with the present state, and without an error.

From the moment of the request to stop, in this order:
1. no new connections are accepted, idle ones are closed, and WebSockets are closed with 1012;
2. long polls are answered with the present state, and streams end;
3. commands under way have `ANSWER_GRACE_S` for their answer; then they are answered as if their time were over;
4. `WRITE_GRACE_S` later, all requests without an answer are answered with 503 `unavailable`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.metrics import Metrics
from gateway.problems import Problem, response
from schemas.refusals import Refusal

logger = logging.getLogger(__name__)

# A decider answers within milliseconds; one that has not answered by then is unlikely to do so during the shutdown.
ANSWER_GRACE_S = 1.0
WRITE_GRACE_S = 0.2
DETAIL = (
    "this gateway is stopping; the request may still be carried out, and is carried out once if it is repeated at any"
    " gateway with the same ids and the same idempotency key"
)

End = Callable[[], None]


@dataclass(slots=True)
class Shutdown:
    """The state of the shutdown: whether it has begun, what to end then, and the requests without an answer."""

    has_begun: bool = False
    _ends: list[End] = field(default_factory=list)
    _unanswered: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self) -> None:
        """End everything that waits for an event (step 2)."""
        self.has_begun = True
        logger.info("the gateway is stopping; requests without an answer: %d", len(self._unanswered))
        for end in tuple(self._ends):
            end()

    @contextmanager
    def ends(self, end: End) -> Iterator[None]:
        """Within this context, `end` is called when the shutdown begins; at once if it has begun."""
        self._ends.append(end)
        try:
            if self.has_begun:
                end()
            yield
        finally:
            self._ends.remove(end)

    @contextmanager
    def unanswered(self, task: asyncio.Task[None]) -> Iterator[End]:
        """Within this context a request waits for its answer; call the yielded function when the answer begins."""
        self._unanswered.add(task)
        try:
            yield lambda: self._unanswered.discard(task)
        finally:
            self._unanswered.discard(task)

    def give_up(self) -> None:
        """Make the requests without an answer end with 503 (step 4)."""
        if self._unanswered:
            logger.info("requests answered with 503, to be repeated: %d", len(self._unanswered))
        for task in tuple(self._unanswered):
            task.cancel()


class ShutdownResponses:
    """Middleware: answers requests that were given up with 503; the application answers all others."""

    def __init__(self, app: ASGIApp, shutdown: Shutdown, metrics: Metrics) -> None:
        self.app = app
        self.shutdown = shutdown
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        if scope["type"] != "http" or task is None:
            await self.app(scope, receive, send)
            return
        has_begun = False
        with self.metrics.in_flight.track_inprogress(), self.shutdown.unanswered(task) as answer_begins:

            async def noted(message: Message) -> None:
                nonlocal has_begun
                if not has_begun:
                    has_begun = True
                    answer_begins()
                await send(message)

            try:
                await self.app(scope, receive, noted)
            except asyncio.CancelledError:
                # Only the gateway's shutdown cancels a request.
                if not self.shutdown.has_begun:
                    raise
                task.uncancel()
                if has_begun:
                    logger.info("an answer was broken off: its client did not read it in time")
                    return
                problem = Problem(Refusal.UNAVAILABLE, DETAIL, retry_after=1)
                await response(problem)(scope, receive, send)
