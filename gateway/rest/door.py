"""One HTTP request at the door: who asks, what was sent, and the answer; the same for every route."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.idempotency import idempotency_key
from gateway.identity.doors import Admission
from gateway.live.cursor import CursorRefused, Vector
from gateway.operations.plan import Gate, Given, Making, Reply
from gateway.problems import Problem
from gateway.rest.parameters import IDEMPOTENCY_KEY, LIMIT, Number, Seconds, Word
from gateway.server.visitors import greet
from gateway.service.served import Served
from gateway.shares.intake import taken_in
from gateway.shares.work import owner_of
from gateway.strictjson import BODY_MAX_BYTES, parse_object
from projections.queries.moment import Moment
from projections.queries.paging import BadCursor, Mark, Page, cursor_at, items_after
from projections.queries.views import ANSWER_S, Positions
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.token import Claims

T = TypeVar("T")
# Where the middleware finds in a request's state who asked.
OWNER = "owner"
_SECONDS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,3})?")
AFTER_WAIT_S = 3.0
VIEWS_LOOK_S = 0.05
# A page ends here, well below what may wait for one subject: a larger one could never be sent.
PAGE_BYTES = 8 * 1024 * 1024


class Door(NamedTuple):
    """A request whose sender is known."""

    request: Request
    gateway: Served
    admission: Admission

    @property
    def claims(self) -> Claims:
        """What its token says."""
        return self.admission.claims

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
        """The idempotency key, None where there is none.

        Raises:
            Problem: 422, it is no such key.
        """
        key = self.request.headers.get(IDEMPOTENCY_KEY.name)
        return None if key is None else idempotency_key(key, IDEMPOTENCY_KEY.name)

    def query(self, name: str) -> str | None:
        """A query parameter; None where it is missing."""
        return self.request.query_params.get(name)

    def one_of(self, word: Word) -> str | None:
        """A query parameter that is one of some words; None where it is missing.

        Raises:
            Problem: 422, it is another.
        """
        return word_in(self.request, word)

    def seconds(self, parameter: Seconds) -> float:
        """A query parameter in seconds.

        Raises:
            Problem: 422, not a number from 0 to its most.
        """
        text = self.query(parameter.name)
        if text is None:
            return parameter.default
        # Python reads more as a number than clients write: 1_0, digits of other scripts, white space, nan.
        if _SECONDS.fullmatch(text) is None or float(text) > parameter.most:
            raise Problem(Refusal.INVALID, f"{parameter.name} must be seconds from 0 to {parameter.most}")
        return float(text)

    def limit(self) -> int | None:
        """The query parameter `limit`.

        Raises:
            Problem: 422, not a number that it takes.
        """
        return self.number(LIMIT)

    def number(self, parameter: Number) -> int | None:
        """A query parameter that is a whole number; None where it is missing.

        Raises:
            Problem: 422, not a number that it takes.
        """
        text = self.query(parameter.name)
        if text is None:
            return None
        least, most = parameter.least, parameter.most
        # So many digits at most are read at all.
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not is_number or not least <= int(text) <= most:
            detail = f"{parameter.name} must be a whole number from {least} to {most}"
            raise Problem(Refusal.INVALID, detail)
        return int(text)

    async def given(self) -> Given:
        """The body, read now and parsed when it is asked for."""
        raw = await read_raw(self.request)
        if raw is None:
            return _too_large
        return await self.taken_in(raw, parse_object)

    async def taken_in(self, raw: bytes, read: Callable[[bytes], T]) -> Callable[[], T]:
        """Take a body in, at the caller's cost: what gives its value, or raises its refusal."""
        return await taken_in(self.gateway.work, owner_of(self.actor), raw, read)

    async def perform(self, make: Making) -> Response:
        """Plan, ask the decider, and answer, at the caller's cost.

        Raises:
            Problem: a refusal, or nobody has answered in time.
        """
        return answer(await self.priced(self.gate.perform(make)))

    async def settle_after(self) -> Vector | None:
        """Wait until this gateway has read what `?after=` names.

        Returns:
            What it names; None where nothing is asked for.

        Raises:
            Problem: 422, no cursor of ours; 503, it is not there in time.
        """
        text = self.query("after")
        if text is None:
            return None
        live = self.gate.live
        try:
            vector = live.position.key.read(text)
        except CursorRefused as error:
            raise Problem(Refusal.INVALID, f"after: {error}") from error
        if not await live.reached(vector, AFTER_WAIT_S):
            raise Problem(Refusal.UNAVAILABLE, "this gateway has not read that far yet", retry_after=1)
        return vector

    async def settle_views_after(self) -> None:
        """Wait until the views have read what `?after=` names; errors as `settle_after`."""
        vector = await self.settle_after()
        until_s = time.monotonic() + AFTER_WAIT_S
        while vector is not None:
            _, positions = await self.ask_views(lambda _: None)
            if _have_reached(positions, vector):
                return
            if time.monotonic() >= until_s:
                raise Problem(Refusal.UNAVAILABLE, "the views have not read that far yet", retry_after=1)
            await asyncio.sleep(VIEWS_LOOK_S)

    async def ask_views(self, ask: Callable[[Moment], T]) -> tuple[T, Positions]:
        """Ask the views in one moment, in the caller's turn and at its cost.

        Raises:
            Problem: 503, they cannot be read, or have not answered what the caller asked before.
        """
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self.gateway.work.asked(owner_of(self.actor), self.gateway.views.read, ask)
        except TimeoutError as error:
            detail = f"the views have not answered this subject's earlier questions for {ANSWER_S:.0f} s"
            raise Problem(Refusal.UNAVAILABLE, detail, retry_after=1) from error

    async def paged(self, ask: Callable[[Moment], Page], item: Callable[[Any], dict[str, Any]]) -> Response:
        """A page of the views, no older than `?after=`, as a list answer.

        Raises:
            Problem: 422, the page's cursor or `after` is none of ours; 503, the views cannot be read.
        """
        await self.settle_views_after()
        try:
            page, _ = await self.ask_views(ask)
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        return await self.page(page, item)

    async def page(self, page: Page, item: Callable[[Any], dict[str, Any]]) -> Response:
        """A page of rows as a list answer."""
        return await self.listed(page.rows, item, page.next_cursor, page.cursor_after)

    async def listed_after(
        self, items: Iterable[T], item: Callable[[T], dict[str, Any]], order: Callable[[T], Mark]
    ) -> Response:
        """A page of what is at hand, from `?cursor=` on; it ends at so many bytes.

        Args:
            items: all of the list, in its order.
            item: how one is shown.
            order: what they are ordered by; see `items_after`.

        Raises:
            Problem: 422, the cursor is none of this list.
        """
        try:
            rest = items_after(items, order, self.query("cursor"))
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        return await self.listed(rest, item, None, lambda one: cursor_at(order(one)))

    async def listed(
        self,
        rows: Iterable[T],
        item: Callable[[T], dict[str, Any]],
        next_cursor: str | None = None,
        cursor_after: Callable[[T], str] | None = None,
    ) -> Response:
        """A list answer, written in slices that let others through.

        Args:
            rows: what it lists.
            item: how a row is shown.
            next_cursor: where the next page begins.
            cursor_after: where it begins if this one ends with a row: at so many bytes it does.
        """
        work, owner = self.gateway.work, owner_of(self.actor)
        cursor = self.gate.live.position.cursor()
        items: list[bytes] = []
        size, last = 0, deque[T](maxlen=2)

        def noted(row: T) -> dict[str, Any]:
            last.append(row)
            return item(row)

        async with work.turn(owner), aclosing(work.written(owner, rows, noted)) as written:
            async for one in written:
                size += len(one)
                if size > PAGE_BYTES and items and cursor_after is not None:
                    next_cursor = cursor_after(last[0])
                    break
                items.append(one)
        tail = b'],"next_cursor":%b,"cursor":"%b"}' % (orjson.dumps(next_cursor), cursor.encode())
        return answer(Reply(200, b'{"items":[' + b",".join(items) + tail))

    async def done(self, work: Callable[[], T]) -> T:
        """What takes long, on a thread and in the caller's turn; where it raises, so does this."""
        return await self.gateway.work.done(owner_of(self.actor), work)

    async def priced(self, work: Coroutine[Any, Any, T]) -> T:
        """What may keep the loop for long, at the caller's cost."""
        return await self.gateway.work.priced(owner_of(self.actor), work)


def _have_reached(positions: Positions, vector: Vector) -> bool:
    """Whether views whose positions are next offsets have read the last offsets of a vector."""
    definitions, *executions = vector.offsets
    return positions.definitions > definitions and all(
        positions.executions.get(partition, 0) > last for partition, last in enumerate(executions)
    )


def word_in(request: Request, word: Word) -> str | None:
    """A request's query parameter that is one of some words; None where it is missing.

    Raises:
        Problem: 422, it is another, empty or there twice.
    """
    _check_said_once(request, word.name)
    found = request.query_params.get(word.name)
    if found is None and word.required:
        raise Problem(Refusal.INVALID, f"{word.name} is needed: one of {', '.join(word.words)}")
    if found is not None and found not in word.words:
        raise Problem(Refusal.INVALID, f"{word.name} is one of {', '.join(word.words)}")
    return found


def still_reading() -> Problem:
    """The answer of a gateway that does not know yet what the log says."""
    return Problem(Refusal.UNAVAILABLE, "the gateway is still reading the log", retry_after=1)


async def door_of(request: Request) -> Door:
    """Who asks, and through which gateway.

    Raises:
        Problem: 401 unauthenticated; 429 quota, the subject asks too often; 503 unavailable, whether the token is
            good, or which roles its subject has, cannot be told now; 422 invalid, a parameter that is not taken here,
            is empty or stands there twice.
    """
    door = await door_for(request, request.headers)
    _check_parameters(request)
    return door


def _check_parameters(request: Request) -> None:
    if not request.query_params:
        return
    # Left out, a misspelt filter or another project's name would be answered with what was not asked for.
    declared = (request.scope["route"].openapi_extra or {}).get("parameters", ())
    taken = [one["name"] for one in declared if one["in"] == "query"]
    unknown = next((name for name in request.query_params if name not in taken), None)
    if unknown is not None:
        only = f"only {', '.join(taken)}" if taken else "none"
        raise Problem(Refusal.INVALID, f"{unknown}: this takes no such parameter, {only}")
    for name in request.query_params:
        _check_said_once(request, name)


def _check_said_once(request: Request, name: str) -> None:
    """Refuse what would be answered with all, or by one of two values: an unset variable in a script, two filters."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise Problem(Refusal.INVALID, f"{name} is given {len(values)} times: give it once")
    if "" in values:
        raise Problem(Refusal.INVALID, f"{name} is empty: give it a value, or leave it out")


async def door_for(request: Request, headers: Mapping[str, str]) -> Door:
    """Likewise, by the token in what stands for the request's headers; errors as `door_of`."""
    gateway: Served = request.app.state.gateway
    admission = await gateway.authenticator.of_headers(headers)
    greet(request.scope)
    if not gateway.caught_up:
        # Principals that were not read yet may have taken the roles that the token claims.
        raise still_reading()
    actor = admission.claims.actor
    if wait_s := gateway.requests.wait_s((actor.tenant, actor.subject), time.monotonic()):
        most = gateway.settings.limits.requests_per_s
        detail = (
            f"over {most} requests a second: ask again after the seconds of Retry-After, or use the WebSocket"
        )
        raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))
    await gateway.work.admit(owner_of(actor))
    request.scope["state"][OWNER] = owner_of(actor)
    return Door(request, gateway, admission)


async def read_raw(request: Request, most: int = BODY_MAX_BYTES) -> bytes | None:
    """A request's body; None where it is over so many bytes, 1 MiB by default: no more of it is read."""
    if int(request.headers.get("content-length") or 0) > most:
        return None
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def answer(reply: Reply) -> Response:
    """A reply as an HTTP response."""
    return Response(reply.body, reply.status, media_type="application/json")


def listed(gate: Gate, items: list[dict[str, Any]], next_cursor: str | None = None) -> Reply:
    """Items as a list answer."""
    return gate.json({"items": items, "next_cursor": next_cursor})


def _too_large() -> dict[str, Any]:
    raise Problem(Refusal.TOO_LARGE, f"the body is over {BODY_MAX_BYTES} bytes")
