"""HEAD, wherever GET is (RFC 9110, section 9.3.2): the status and headers of GET, without its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Where a route that must know it finds in a request's state that nobody sees its answer's body.
WITHOUT_BODY = "without_body"


class HeadAsGet:
    """Middleware: asks the application for GET, and ends the answer after its head."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        has_ended = False

        async def head_alone(message: Message) -> None:
            nonlocal has_ended
            if has_ended:
                return
            await send(message)
            if message["type"] == "http.response.start":
                has_ended = True
                # At once: a stream learns from its end that nobody reads it, and does not begin.
                await send({"type": "http.response.body", "body": b""})

        scope.setdefault("state", {})[WITHOUT_BODY] = True
        await self.app({**scope, "method": "GET"}, receive, head_alone)


def has_body(scope: Scope) -> bool:
    """Whether the body of a request's answer is sent, by its ASGI scope."""
    return not scope.get("state", {}).get(WITHOUT_BODY, False)
