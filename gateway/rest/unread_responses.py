"""Large answers that wait for their readers are limited for each subject, and end if they are not read."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import Problem, response
from gateway.rest.request_context import OWNER
from gateway.server.connections import connection_of
from gateway.shares.budget import RETRY_AFTER_S, UNREAD, Budget
from gateway.shares.work import Owner
from schemas.refusals import Refusal

# Smaller answers are limited by the rate of the subject's requests.
LARGE_BYTES = 64 * 1024


class UnreadResponseLimit:
    """Middleware: counts an answer against its subject until the client has taken it, a stream part by part."""

    def __init__(self, app: ASGIApp, budget: Budget, stall_s: float) -> None:
        """Wrap an application.

        Args:
            app: the application.
            budget: how many bytes may wait.
            stall_s: how long a client may take no bytes before its connection is closed.
        """
        self.app = app
        self.budget = budget
        self.stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # The length of the answer; or, if that is not known, of the part that was sent last.
        taken = streamed = 0
        is_refused = False

        async def counted(message: Message) -> None:
            nonlocal taken, streamed, is_refused
            if is_refused:
                return
            owner: Owner | None = scope["state"].get(OWNER)
            size = _length(message)
            if owner is not None and size > LARGE_BYTES:
                if not self.budget.has_room(owner, size):
                    is_refused = True
                    await response(self._problem(size))(scope, receive, send)
                    return
                taken = size
                self.budget.take(owner, taken)
            await self._wait_until_read(scope)
            if owner is not None and message["type"] == "http.response.body" and not taken:
                # What was sent before has left the process.
                self.budget.give_back(owner, streamed)
                streamed = len(message.get("body", b""))
                self.budget.take(owner, streamed)
            await send(message)

        scope.setdefault("state", {})
        try:
            await self.app(scope, receive, counted)
            await self._wait_until_read(scope)
        finally:
            if taken or streamed:
                self.budget.give_back(scope["state"][OWNER], taken + streamed)

    def _problem(self, size: int) -> Problem:
        if self.budget.ever_has_room(size):
            return Problem(Refusal.QUOTA, UNREAD, retry_after=RETRY_AFTER_S)
        # Waiting would not help. Pages end below this size; this answer is a list without pages.
        detail = (
            f"the answer has {size:,} bytes, more than may wait for one subject: request fewer items with limit "
            "or a filter if the route takes one, or each item by its name"
        )
        return Problem(Refusal.INVALID, detail)

    async def _wait_until_read(self, scope: Scope) -> None:
        connection = connection_of(scope)
        if connection is None or not connection.is_behind():
            return
        try:
            async with asyncio.timeout(self.stall_s):
                await connection.caught_up()
        except TimeoutError:
            connection.abort()


def _length(message: Message) -> int:
    """Return the length in an answer's head; 0 if it has none."""
    if message["type"] != "http.response.start":
        return 0
    return next((int(value) for name, value in message.get("headers", ()) if name == b"content-length"), 0)
