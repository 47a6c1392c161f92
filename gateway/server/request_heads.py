"""Requests that are refused because of their head, on any route: a token in the URL, a doubled header, a coded body.

URLs are kept in the logs and histories of servers and browsers, so a token in one counts as lost. Of two headers with
one name, a proxy may use one and this gateway the other. The size of a compressed body's content is not limited by
the bytes that were sent, and decisions are made on the bytes that were sent.
"""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qsl, unquote_plus

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from gateway.problems import Problem, bare, response
from schemas.refusals import Refusal
from schemas.token_text import holds_token

# Under these names any value is refused; elsewhere in the query, and in the path, a text with the form of a token is.
URL_TOKENS = frozenset(
    {"token", "access_token", "id_token", "bearer_token", "placet_token", "authorization", "bearer", "jwt"}
)
# Each of these must have one value: the caller, the resource, or the key.
SINGLE_HEADERS = frozenset(
    {
        b"authorization",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
        b"placet-grant",
        b"placet-project",
    }
)

CODED_BODY = "a body must be sent without a Content-Encoding"
# The coding that a client can use instead (RFC 9110, section 15.5.16).
IDENTITY = {"Accept-Encoding": "identity"}


class RequestHeadFilter:
    """Middleware: refuses such requests and sockets before anything else handles them."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        problem = problem_of(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None and scope["type"] == "http" and _has_coded_body(scope):
            await bare(415, CODED_BODY, IDENTITY)(scope, receive, send)
        elif problem is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await response(problem)(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).send_denial_response(response(problem))


def problem_of(scope: Scope) -> Problem | None:
    """Return the problem with the head of a request, by its ASGI scope; None if there is none."""
    if _token_in_url(scope["path"], scope["query_string"].decode("latin-1")):
        detail = "a token in a URL ends up in logs: it is refused, and should be replaced"
        return Problem(Refusal.UNAUTHENTICATED, detail)
    counts = Counter(name for name, _ in scope["headers"] if name in SINGLE_HEADERS)
    if doubled := sorted(name.decode() for name, count in counts.items() if count > 1):
        return Problem(
            Refusal.MALFORMED, f"a request has one header {' and one '.join(doubled)}, not several"
        )
    return None


def _has_coded_body(scope: Scope) -> bool:
    headers = scope["headers"]
    codings = b",".join(value for name, value in headers if name == b"content-encoding").split(b",")
    if {coding.strip().lower() for coding in codings} <= {b"", b"identity"}:
        return False
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and int(value) > 0)
        for name, value in headers
    )


def _token_in_url(path: str, query: str) -> bool:
    names = {name.strip().lower() for name, _ in parse_qsl(query, keep_blank_values=True)}
    return bool(URL_TOKENS & names) or any(map(holds_token, (path, query, unquote_plus(query))))
