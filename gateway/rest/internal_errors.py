"""The answer to an error that nothing else answered: 500, with its traceback in the log and nothing of it outside."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.problems import bare

logger = logging.getLogger(__name__)


class InternalErrors:
    """Middleware: answers errors, so that the middleware around it completes that answer like any other.

    Starlette's own handler of errors is outside all middleware, and the server ends the connection after it.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except Exception:
            if has_begun:
                # The server resets the connection: only so its reader learns that the answer is incomplete.
                raise
            logger.exception("%s %s failed", scope["method"], scope["path"])
            answer = bare(500, "something unexpected went wrong; it was logged", {})
            await answer(scope, receive, send)
