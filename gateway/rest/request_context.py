"""One authenticated HTTP request: its caller, its content and its answer; the same for every route."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from gateway.idempotency import idempotency_key
from gateway.identity.authentication import Authentication
from gateway.live.cursor import EARLIEST, CursorRefused, Vector
from gateway.operations.plan import Gate, Given, Making, Reply
from gateway.problems import Problem, still_starting
from gateway.rest.caller_note import note_caller
from gateway.rest.list_cursors import cursor_for, mark_in
from gateway.rest.parameters import CURSOR, IDEMPOTENCY_KEY, LIMIT, Choice, Number, Seconds
from gateway.rest.reading_parameters import check_parameters, choice_in, number_in, seconds_in
from gateway.rest.request_bodies import read_body
from gateway.server.connections import mark_request_authenticated
from gateway.service.served import Served
from gateway.shares.views_wait import ViewsWait
from gateway.shares.work import owner_of
from gateway.strictjson import parse_object
from projections.queries.moment import READ_BYTES, Moment
from projections.queries.paging import BadCursor, Mark, Page, cursor_at, items_after
from projections.queries.views import Positions
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.token import Claims

T = TypeVar("T")
# The key in a request's state under which the middleware finds the caller.
OWNER = "owner"
AFTER_WAIT_S = 3.0
VIEWS_LOOK_S = 0.05
# Well below what may wait for one subject: a larger page could never be sent.
PAGE_BYTES = READ_BYTES


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request whose sender is authenticated; `views_wait` is how long it may still wait for the views."""

    request: Request
    gateway: Served
    authentication: Authentication
    views_wait: ViewsWait = field(default_factory=ViewsWait)

    @property
    def claims(self) -> Claims:
        """The claims of its token."""
        return self.authentication.claims

    @property
    def actor(self) -> Actor:
        """The caller."""
        return self.claims.actor

    @property
    def gate(self) -> Gate:
        """The services that operations need, at the caller's cost.

        Raises:
            Problem: 503, the gateway is still starting.
        """
        if not self.gateway.caught_up:
            raise still_starting()
        return self.gateway.gate.of(self.actor)

    @property
    def key(self) -> str | None:
        """The idempotency key; None if there is none.

        Raises:
            Problem: 422, the key is malformed.
        """
        key = self.request.headers.get(IDEMPOTENCY_KEY.name)
        return None if key is None else idempotency_key(key, IDEMPOTENCY_KEY.name)

    def query(self, name: str) -> str | None:
        """Return a query parameter; None if it is missing."""
        return self.request.query_params.get(name)

    def cursor(self) -> str | None:
        """Return where the requested page of this list begins; None at the list's beginning.

        Raises:
            Problem: 422, the cursor is another list's.
        """
        return mark_in(self.request.url.path, self.query(CURSOR.name))

    def one_of(self, parameter: Choice) -> str | None:
        """Return a query parameter that must be one of its choices; None if it is missing.

        Raises:
            Problem: 422, it is none of them.
        """
        return choice_in(self.request, parameter)

    def seconds(self, parameter: Seconds) -> float:
        """Return how many seconds a query parameter permits to wait.

        Raises:
            Problem: 422, it is not a number from 0 to the parameter's maximum.
        """
        text = self.query(parameter.name)
        return float(parameter.default) if text is None else seconds_in(text, parameter)

    def limit(self) -> int | None:
        """Return the query parameter `limit`.

        Raises:
            Problem: 422, it is not a number in its range.
        """
        return self.number(LIMIT)

    def number(self, parameter: Number) -> int | None:
        """Return a query parameter that is a whole number; None if it is missing.

        Raises:
            Problem: 422, it is not a number in the parameter's range.
        """
        text = self.query(parameter.name)
        return None if text is None else number_in(text, parameter)

    async def given(self) -> Given:
        """Read the body now; it is parsed when the result is called."""
        return await self.taken_in(parse_object)

    async def taken_in(self, read: Callable[[bytes], T]) -> Callable[[], T]:
        """Take the body in, at the caller's cost; return a function that returns its value or raises its refusal.

        Raises:
            Problem: 429 quota, too much of what the caller's subject sends is in memory.
        """
        work, budget = self.gateway.work, self.gateway.budget
        return await read_body(self.request, work, budget, owner_of(self.actor), read)

    def count_requests(self, more: int) -> None:
        """Count further requests for the caller, which this one stands for: its next ones may have to wait."""
        most = self.gateway.settings.limits.requests_per_s
        self.gateway.requests.charge(owner_of(self.actor), time.monotonic(), min(more, most))

    async def perform(self, make: Making) -> Response:
        """Plan, send the command to the decider, and answer, at the caller's cost.

        Raises:
            Problem: a refusal, or the decider has not answered in time.
        """
        return answer(await self.priced(self.gate.perform(make)))

    async def settle_after(self) -> Vector | None:
        """Wait until this gateway has read the log up to the cursor in `?after=`.

        Returns:
            The cursor's offsets; None if there is no such parameter, or it names the begin of the log.

        Raises:
            Problem: 422, it is not a cursor of this service; 503, the gateway has not read that far in time.
        """
        text = self.query("after")
        if text is None or text == EARLIEST:
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
        """Wait until the views have read the log up to the cursor in `?after=`; errors as `settle_after`."""
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
        """Query the views at one moment, in the caller's turn and at its cost.

        Raises:
            Problem: 503, the views cannot be read, are being built anew, or have not answered within the time of this
                request.
        """
        work, read = self.gateway.work, self.gateway.views.read_whole
        return await work.asked(owner_of(self.actor), read, ask, self.views_wait)

    async def paged(self, ask: Callable[[Moment], Page], item: Callable[[Any], dict[str, Any]]) -> Response:
        """Answer with a page of the views, no older than `?after=`, as a list.

        Raises:
            Problem: 422, the page's cursor or `after` is invalid; 503, the views cannot be read.
        """
        await self.settle_views_after()
        async with self.gateway.work.page(owner_of(self.actor), self.views_wait):
            try:
                page, _ = await self.ask_views(ask)
            except BadCursor as error:
                raise Problem(Refusal.INVALID, str(error)) from error
            return await self.page(page, item)

    async def page(self, page: Page, item: Callable[[Any], dict[str, Any]]) -> Response:
        """Answer with a page of rows as a list."""
        return await self.listed(page.rows, item, page.next_cursor, page.cursor_after)

    async def listed_after(
        self, items: Iterable[T], item: Callable[[T], dict[str, Any]], order: Callable[[T], Mark]
    ) -> Response:
        """Answer with a page of a list in memory, from `?cursor=` on; the page ends at `PAGE_BYTES`.

        Args:
            items: the whole list, in its order.
            item: makes the JSON of an item.
            order: the sort key of an item; see `items_after`.

        Raises:
            Problem: 422, the cursor is not of this list.
        """
        try:
            rest = items_after(items, order, self.cursor())
        except BadCursor as error:
            raise Problem(Refusal.INVALID, str(error)) from error
        return await self.listed(rest, item, None, lambda one: cursor_at(order(one)))

    async def listed(
        self,
        rows: Iterable[T],
        item: Callable[[T], dict[str, Any]],
        next_cursor: str | None = None,
        cursor_after: Callable[[T], str] | None = None,
        *,
        name: str = "items",
        of: Mapping[str, Any] | None = None,
    ) -> Response:
        """Answer with a list, written in slices between which other requests are served.

        Args:
            rows: the rows to list.
            item: makes the JSON of a row.
            next_cursor: where the next page begins.
            cursor_after: where it begins if this page ends early with a row, which happens at `PAGE_BYTES`.
            name: the name of the list in the answer.
            of: the other members of the answer, which say what the list is of.
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
        next_page = orjson.dumps(cursor_for(self.request.url.path, next_cursor))
        head = orjson.dumps({**(of or {}), name: []}).removesuffix(b"]}")
        tail = b'],"next_cursor":%b,"cursor":"%b"}' % (next_page, cursor.encode())
        return answer(Reply(200, head + b",".join(items) + tail))

    async def done(self, work: Callable[[], T]) -> T:
        """Run slow work on a thread, in the caller's turn; its exceptions are raised here."""
        return await self.gateway.work.done(owner_of(self.actor), work)

    async def priced(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work that may occupy the event loop for long, at the caller's cost."""
        return await self.gateway.work.priced(owner_of(self.actor), work)


def _have_reached(positions: Positions, vector: Vector) -> bool:
    """Return True if views whose positions are next offsets have read the last offsets of a vector."""
    definitions, *executions = vector.offsets
    return positions.definitions > definitions and all(
        positions.executions.get(partition, 0) > last for partition, last in enumerate(executions)
    )


async def context_of(request: Request) -> RequestContext:
    """Authenticate a request.

    Raises:
        Problem: 401 unauthenticated; 429 quota, the subject sends too many requests; 503 unavailable, the token or
            the roles of its subject cannot be checked now; 422 invalid, a parameter is unknown to this route, empty
            or given twice.
    """
    context = await context_for(request, request.headers)
    check_parameters(request)
    return context


async def context_for(request: Request, headers: Mapping[str, str]) -> RequestContext:
    """Authenticate by the token in `headers`, which stand for the request's headers; errors as `context_of`."""
    gateway: Served = request.app.state.gateway
    authentication = await gateway.authenticator.of_headers(headers)
    actor = authentication.claims.actor
    owner = owner_of(actor)
    mark_request_authenticated(request.scope, owner)
    if not gateway.caught_up:
        # Principals that were not read yet may have removed the roles that the token claims.
        raise still_starting()
    note_caller(actor, request.path_params)
    if wait_s := gateway.requests.wait_s(owner, time.monotonic()):
        most = gateway.settings.limits.requests_per_s
        detail = (
            f"over {most} requests a second: try again after the seconds in Retry-After, or use the WebSocket"
        )
        raise Problem(Refusal.QUOTA, detail, retry_after=math.ceil(wait_s))
    await gateway.work.admit(owner)
    request.scope["state"][OWNER] = owner
    return RequestContext(request, gateway, authentication)


def answer(reply: Reply) -> Response:
    """A reply as an HTTP response."""
    return Response(reply.body, reply.status, media_type="application/json")


def listed(gate: Gate, items: list[dict[str, Any]], next_cursor: str | None = None) -> Reply:
    """Return items as a list answer."""
    return gate.json({"items": items, "next_cursor": next_cursor})
