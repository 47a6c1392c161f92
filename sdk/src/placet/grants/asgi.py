"""An ASGI middleware for tool servers: a call without a grant never reaches the tool.

A call is a POST whose body is a JSON object, the arguments, with the grant's token in the header `Placet-Grant`. The
steps for each call, in this order:
1. everything that the grant does not bind is refused: other methods, a query string, other media types, a long body;
2. the grant is verified, and its digest compared with that of the body;
3. the grant is consumed through the gateway;
4. the tool's application gets the same body, and the `Attempt` in `scope["state"]["placet"]`; while it runs, the
   lease is renewed if the consumer supports that (`GatewayConsumer`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from placet.grants.consuming import Attempt, Consume, GatewayConsumer
from placet.grants.refusals import Code, GrantRefused
from placet.grants.verifier import GrantVerifier
from placet.lease import Stoppable, alive, beating

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER = b"placet-grant"
BODY_MAX_BYTES = 256 * 1024
MEDIA_TYPE = b"application/json"
UTF_8 = frozenset({b"", b"charset=utf-8", b'charset="utf-8"'})
READING = frozenset({"GET", "HEAD"})
POLICY_VIOLATION = 1008
STATUS: dict[Code, int] = {
    "missing": 401,
    "malformed": 401,
    "malformed_arguments": 400,
    "wrong_type": 401,
    "unknown_key": 401,
    "bad_signature": 401,
    "not_yet_valid": 401,
    "expired": 401,
    "wrong_tool": 403,
    "digest_mismatch": 403,
    "not_authorised": 403,
    "already_consumed": 409,
    "not_released": 409,
    "keys_unavailable": 503,
    "unavailable": 503,
}


class Refusal(Exception):
    """A refusal, as the response in place of the tool's."""

    def __init__(self, status: int, code: str, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers


class GrantMiddleware:
    """Lets a call through to one tool's application once, with exactly what was released.

    Everything else is refused: other methods and WebSockets, on every path; only `safe_paths` can be read. A tool
    must not act on what a grant does not bind: the path and headers. Mount one middleware for each tool.

    Args:
        app: the tool's application.
        verifier: the verifier of this tool.
        consume: consumes a grant once, such as `GatewayConsumer`.
        safe_paths: paths that anybody may GET, such as a health check; compared exactly.
        body_max_bytes: the maximal length of a body.
    """

    def __init__(
        self,
        app: Application,
        verifier: GrantVerifier,
        consume: Consume,
        *,
        safe_paths: Collection[str] = (),
        body_max_bytes: int = BODY_MAX_BYTES,
    ) -> None:
        self._app = app
        self._verifier = verifier
        self._consume = consume
        self._safe_paths = frozenset(safe_paths)
        self._body_max_bytes = body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "calls must be POSTs"})
        elif scope["method"] in READING and scope["path"] in self._safe_paths:
            await self._app(scope, receive, send)
        else:
            await self._call(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            token = _grant_of(scope)
            body = await self._body(scope, receive)
            attempt = await self._consume(await self._verifier.verify(token, body))
        except GrantRefused as refused:
            await _answer(send, Refusal(STATUS[refused.code], refused.code, refused.detail))
            return
        except Refusal as refusal:
            await _answer(send, refusal)
            return
        inner = {**scope, "state": {**scope.get("state", {}), "placet": attempt}}
        if not attempt.may_begin():
            # The process was frozen.
            await _answer(
                send, Refusal(STATUS["not_released"], "not_released", "the lease is over: nothing ran")
            )
            return
        with alive(self._signs_of_life(attempt)):
            await self._app(inner, _again(body, receive), send)

    def _signs_of_life(self, attempt: Attempt) -> Callable[[], Stoppable] | None:
        consumer, lease = self._consume, attempt.lease
        if not isinstance(consumer, GatewayConsumer) or lease is None:
            return None
        renewing = beating(lease, lambda: consumer.renew(attempt))
        return lambda: asyncio.get_running_loop().create_task(renewing)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        length = _header(scope, b"content-length")
        if length.isdigit() and int(length) > self._body_max_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "malformed", "the body ended early")
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self._body_max_bytes:
                raise self._too_large()
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> Refusal:
        return Refusal(413, "too_large", f"the body is over {self._body_max_bytes} bytes")


def _grant_of(scope: Scope) -> str:
    """The grant's token, after a check that the request has nothing that a grant does not bind."""
    if scope["method"] != "POST":
        raise Refusal(405, "method_not_allowed", "a call must be a POST", (b"allow", b"POST"))
    tokens = [value for name, value in scope["headers"] if name.lower() == HEADER]
    if len(tokens) != 1:
        raise GrantRefused("missing", "send the grant's token, once, in the header Placet-Grant")
    if scope.get("query_string"):
        raise Refusal(400, "malformed", "a call must not have a query: the grant covers only the body")
    media_type, *parameters = (part.strip().lower() for part in _header(scope, b"content-type").split(b";"))
    # In another character set the same bytes could be other arguments.
    is_json = media_type == MEDIA_TYPE and UTF_8.issuperset(parameters)
    if not is_json or _header(scope, b"content-encoding"):
        raise Refusal(
            415,
            "unsupported_media_type",
            "a call's body must be application/json in UTF-8, without content encoding",
        )
    token: str = tokens[0].decode("latin-1").strip()
    return token


def _header(scope: Scope, wanted: bytes) -> bytes:
    """A header's value; if it was sent more than once, all values joined, which matches no expected value."""
    return b", ".join(value for name, value in scope["headers"] if name.lower() == wanted)


def _again(body: bytes, receive: Receive) -> Receive:
    """Receives the verified body first, then the messages after it."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _answer(send: Send, refusal: Refusal) -> None:
    document = {
        "type": f"/problems/{refusal.code}",
        "title": refusal.code.replace("_", " "),
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
    }
    body = json.dumps(document).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *refusal.headers,
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Placet-Grant realm="placet"'))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
