"""HEAD for every route that has GET (RFC 9110, section 9.3.2): the status and headers of GET, without its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The key in a request's state that tells a route that the body of its answer is not sent.
WITHOUT_BODY = "without_body"


class HeadAsGet:
    """Middleware: calls the application with GET, and ends the answer after its head."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})[WITHOUT_BODY] = True
        as_get: Scope = {**scope, "method": "GET"}
        has_ended = False

        async def head_alone(message: Message) -> None:
            nonlocal has_ended
            if has_ended:
                return
            if "route" in as_get:
                # Whoever is around this one asks which route answers, by the scope that it passed on.
                scope["route"] = as_get["route"]
            await send(message)
            if message["type"] == "http.response.start":
                has_ended = True
                # At once: the end of the answer shows a stream that it has no reader, so it does not begin.
                await send({"type": "http.response.body", "body": b""})

        await self.app(as_get, receive, head_alone)


def has_body(scope: Scope) -> bool:
    """Return True if the body of a request's answer is sent, by the request's ASGI scope."""
    return not scope.get("state", {}).get(WITHOUT_BODY, False)
