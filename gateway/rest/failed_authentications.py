"""Unauthenticated requests are refused when too many have failed: per address, and only without a valid token."""

from __future__ import annotations

import math
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from gateway.problems import Problem, response
from gateway.server.connections import connection_of
from gateway.shares.rates import Buckets
from gateway.sockets.close import NOT_AUTHENTICATED
from schemas.refusals import Refusal

# Tokens that fail verification, per second and address; the failures of this many seconds can come at once.
FAILURES_PER_S = 50.0
FAILURES_BURST_S = 4.0


class FailedAuthenticationLimit:
    """Middleware: an address with too many failed authentications is refused before anything else is checked.

    Connections that have presented a valid token are not affected, whatever their address.
    """

    def __init__(self, app: ASGIApp, failures: Buckets) -> None:
        """Wrap an application.

        Args:
            app: the application.
            failures: how often an address can fail.
        """
        self.app = app
        self.failures = failures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        connection = connection_of(scope)
        if connection is None:
            await self.app(scope, receive, send)
            return
        address = connection.address
        wait_s = self.failures.charge(address, time.monotonic(), 0.0)
        if wait_s and not connection.is_authenticated:
            await _refuse(scope, receive, send, wait_s)
            return

        async def watched(message: Message) -> None:
            was_refused = message.get("status") == 401 or message.get("code") == NOT_AUTHENTICATED
            if was_refused and connection.is_authenticated:
                # Its next request must authenticate it again.
                connection.mark_unauthenticated()
            elif was_refused:
                self.failures.charge(address, time.monotonic(), 1.0)
            await send(message)

        await self.app(scope, receive, watched)


async def _refuse(scope: Scope, receive: Receive, send: Send, wait_s: float) -> None:
    problem = Problem(
        Refusal.QUOTA,
        "too many requests from this address had no valid token",
        retry_after=math.ceil(wait_s),
    )
    refusal = response(problem, {"Connection": "close"})
    if scope["type"] == "websocket":
        await WebSocket(scope, receive, send).send_denial_response(refusal)
    else:
        await refusal(scope, receive, send)
