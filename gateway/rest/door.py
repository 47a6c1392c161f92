"""One HTTP request at the door: who asks, what was sent, and the answer; the same for every route."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from gateway.operations.plan import Gate, Given, Plan, Reply
from gateway.problems import Problem
from gateway.server.visitors import greet
from gateway.service import Gateway
from gateway.sockets.cursor import CursorRefused
from gateway.strictjson import BODY_MAX_BYTES, parse_object
from projections.queries.moment import Moment
from projections.queries.paging import BadCursor, Page
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.token import Claims

URL_TOKENS = frozenset({"token", "access_token", "id_token", "authorization", "bearer", "jwt"})
KEY_MAX_CHARS = 256
AFTER_WAIT_S = 3.0
WAIT_MAX_S = 60.0


class Door(NamedTuple):
    """A request whose sender is known."""

    request: Request
    gateway: Gateway
    claims: Claims

    @property
    def actor(self) -> Actor:
        """Who asks."""
        return self.claims.actor

    @property
    def gate(self) -> Gate:
        """What operations need.

        Raises:
            Problem: 503, the gateway is still starting.
        """
        if not self.gateway.caught_up:
            raise still_reading()
        return self.gateway.gate

    @property
    def key(self) -> str | None:
        """The idempotency key.

        Raises:
            Problem: 422, it is too long or not printable.
        """
        key = self.request.headers.get("idempotency-key")
        if key is not None and (not key.isprintable() or not 1 <= len(key) <= KEY_MAX_CHARS):
            raise Problem(
                Refusal.INVALID, f"Idempotency-Key must be 1 to {KEY_MAX_CHARS} printable characters"
            )
        return key

    def query(self, name: str) -> str | None:
        """A query parameter; None where it is missing or empty."""
        return self.request.query_params.get(name) or None

    def one_of(self, name: str, values: Collection[str]) -> str | None:
        """A query parameter that is one of some words; None where it is missing or empty.

        Raises:
            Problem: 422, it is another.
        """
        word = self.query(name)
        if word is not None and word not in values:
            raise Problem(Refusal.INVALID, f"{name} is one of {', '.join(values)}")
        return word

    def seconds(self, name: str, default: float, most: float = WAIT_MAX_S) -> float:
        """A query parameter in seconds.

        Raises:
            Problem: 422, not a number from 0 to `most`.
        """
        text = self.query(name)
        try:
            seconds = default if text is None else float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= most:
            raise Problem(Refusal.INVALID, f"{name} must be seconds from 0 to {most:g}")
        return seconds

    def limit(self) -> int | None:
        """The query parameter `limit`.

        Raises:
            Problem: 422, not a positive number.
        """
        text = self.query("limit")
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) == 0:
            raise Problem(Refusal.INVALID, "limit must be a positive number")
        return int(text)

    async def given(self) -> Given:
        """The body, read now and parsed when it is asked for."""
        raw = await read_raw(self.request)
        return lambda: parse_object(_whole(raw))

    async def perform(self, make: Callable[[], Plan]) -> Response:
        """Plan, ask the decider, and answer.

        Raises:
            Problem: a refusal, or nobody has answered in time.
        """
        return answer(await self.gate.perform(make))

    async def settle_after(self) -> None:
        """Wait until this gateway has read what `?after=` names.

        Raises:
            Problem: 422, no cursor of ours; 503, it is not there in time.
        """
        text = self.query("after")
        if text is None:
            return
        live = self.gate.live
        try:
            vector = live.position.key.read(text)
        except CursorRefused as error:
            raise Problem(Refusal.INVALID, f"after: {error}") from error
        if not await live.reached(vector, AFTER_WAIT_S):
            raise Problem(Refusal.UNAVAILABLE, "this gateway has not read that far yet", retry_after=1)

    async def paged(
        self, ask: Callable[[Moment], Page], item: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> Response:
        """A page of the views, no older than `?after=`, as a list answer.

        Raises:
            Problem: 422, the page's cursor or `after` is none of ours; 503, the views cannot be read.
        """
        await self.settle_after()
        try:
            page, _ = await self.gateway.views.read(ask)
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        return self.page(page, item)

    def page(self, page: Page, item: Callable[[dict[str, Any]], dict[str, Any]]) -> Response:
        """A page of rows as a list answer."""
        return answer(listed(self.gate, [item(row) for row in page.rows], page.next_cursor))


def still_reading() -> Problem:
    """The answer of a gateway that does not know yet what the log says."""
    return Problem(Refusal.UNAVAILABLE, "the gateway is still reading the log", retry_after=1)


async def door_of(request: Request) -> Door:
    """Who asks, and through which gateway.

    Raises:
        Problem: 401 unauthenticated; 429 quota, the subject asks too often; 503 unavailable, whether the token is
            good, or which roles its subject has, cannot be told now.
    """
    gateway: Gateway = request.app.state.gateway
    if URL_TOKENS.intersection(name.lower() for name in request.query_params):
        raise Problem(
            Refusal.UNAUTHENTICATED,
            "a token in a URL ends up in logs: it is refused, and should be withdrawn",
        )
    claims = await gateway.authenticator.of_headers(request.headers)
    greet(request.scope)
    if not gateway.caught_up:
        # Principals that were not read yet may have taken the roles that the token claims.
        raise still_reading()
    actor = claims.actor
    if wait_s := gateway.requests.wait_s((actor.tenant, actor.subject), time.monotonic()):
        most = gateway.settings.limits.requests_per_s
        detail = (
            f"over {most} requests a second: ask again after the seconds of Retry-After, or use the WebSocket"
        )
        raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))
    return Door(request, gateway, claims)


async def read_raw(request: Request) -> bytes | None:
    """A request's body; None where it is over 1 MiB, of which no more is read."""
    if int(request.headers.get("content-length") or 0) > BODY_MAX_BYTES:
        return None
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_MAX_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def answer(reply: Reply) -> Response:
    """A reply as an HTTP response."""
    return Response(reply.body, reply.status, media_type="application/json")


def listed(gate: Gate, items: list[dict[str, Any]], next_cursor: str | None = None) -> Reply:
    """Items as a list answer."""
    return gate.json({"items": items, "next_cursor": next_cursor})


def _whole(raw: bytes | None) -> bytes:
    if raw is None:
        raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
    return raw
