"""From requests to typed answers: the basis of every part of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from placet import asks, tracing
from placet.errors import (
    PASSING_ERRORS,
    PlacetError,
    Refused,
    StillHeld,
    Unavailable,
    refusal,
)
from placet.exposure import Exposure
from placet.keys import keyed
from placet.models import Object, Page, ToolCall
from placet.parsing import UnexpectedAnswer, parse
from placet.taken_variables import TakenVariables
from placet.threads import Threads, ThreadsByLoop
from placet.transport.port import Patience, Reply, Request, Transport
from placet.transport.retry import MOST_RETRY_AFTER_S, delays
from placet.tries import Attempt, AttemptKey

T = TypeVar("T")


@dataclass(frozen=True)
class Channel:
    """A transport, and the patience to use it with."""

    transport: Transport
    patience: Patience
    # The versions of the tools that this client found published as they were declared, or published itself.
    registered: set[str] = field(default_factory=set, compare=False, repr=False)
    unused: dict[AttemptKey, Attempt] = field(default_factory=dict, compare=False, repr=False)
    exposed: Exposure = field(default_factory=Exposure, compare=False, repr=False)
    taken: TakenVariables = field(default_factory=TakenVariables, compare=False, repr=False)
    threads_by_loop: ThreadsByLoop = field(default_factory=ThreadsByLoop, compare=False, repr=False)

    @property
    def threads(self) -> Threads:
        """The threads of the event loop that asks."""
        return self.threads_by_loop.here()

    async def ask(self, request: Request) -> Any:
        """The body of the answer.

        Raises:
            Refused: Placet refused the request.
            Unreachable: no answer came.
        """
        if request.writes:
            request = keyed(request)
        if trace := tracing.current():
            request = replace(request, trace=trace)
        try:
            return answered(await self.transport.send(request))
        except Unavailable as error:
            error.path = request.path if request.writes else None
            raise

    async def is_exposed(self) -> bool:
        """Returns True if the text of an exception can contain sensitive values that this process has."""

        async def schema(tool: str) -> Any:
            definition = await self.ask(asks.get_tool(tool))
            return definition.get("inputSchema") if isinstance(definition, Mapping) else None

        return await self.exposed.is_exposed(schema)

    async def one(self, cls: type[T], request: Request, **known: Any) -> T:
        """The answer as one resource; `known` are fields of the request that the answer can leave out."""
        body = await self.ask(request)
        return parse(cls, {**known, **body} if known and isinstance(body, Mapping) else body)

    async def page(self, cls: type[T], request: Request) -> Page[T]:
        """The answer as a part of a list."""
        return read_page(lambda item: parse(cls, item), await self.ask(request))

    async def objects(self, request: Request) -> Page[Object]:
        """The answer as a part of a list of unparsed objects."""
        return read_page(lambda item: item, await self.ask(request))

    async def decided(self, call: ToolCall, timeout_s: float | None) -> ToolCall:
        """Wait until a call is no longer pending.

        Raises:
            StillHeld: `timeout_s` is over.
            Unreachable, Unavailable: no gateway could be reached for too long.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + _seconds(timeout_s)
        key = call.execution_id, call.call_id

        async def look() -> ToolCall:
            reply = await self.transport.decision(key, max(until - clock(), 0.0))
            return parse(ToolCall, answered(reply))

        while call.pending:
            if clock() >= until:
                raise StillHeld(call, timeout_s or 0.0)
            call = await self.patiently(look, until - clock())
        return call

    async def patiently(self, look: Callable[[], Awaitable[T]], timeout_s: float | None = None) -> T:
        """The result of reading something that a person decides, with as many requests as needed.

        If the gateway is not reachable, or a proxy in front of it answers, this waits for up to
        `Patience.outage_s`: a person takes longer than a restart.

        Args:
            look: sends one request, with the usual patience.
            timeout_s: after this time no request is repeated.

        Raises:
            Unreachable, Unavailable, QuotaExceeded: no gateway could be reached for too long; the error of the last
                try. The decision may exist nevertheless.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        give_up_at = began + min(self.patience.outage_s, _seconds(timeout_s))
        pauses = delays(self.patience)
        while True:
            try:
                return await look()
            except PASSING_ERRORS as error:
                if clock() >= give_up_at:
                    raise
                pause_s = max(next(pauses), _told_to_wait_s(error))
                await asyncio.sleep(min(pause_s, give_up_at - clock()))


def _seconds(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else timeout_s


def _told_to_wait_s(error: PlacetError) -> float:
    said = error.fields.get("retry_after") if isinstance(error, Refused) else None
    return min(float(said), MOST_RETRY_AFTER_S) if isinstance(said, int | float) else 0.0


def answered(reply: Reply) -> Any:
    """The body of a reply, or its refusal raised."""
    if not reply.ok:
        raise refusal(reply.status, reply.body, reply.retry_after_s)
    return reply.body


def read_page(read: Callable[[Any], T], body: Any) -> Page[T]:
    """A list answer, `{items, next_cursor}`.

    Raises:
        UnexpectedAnswer: it is not a list.
    """
    answer = body if isinstance(body, Mapping) else {"items": body}
    items = answer.get("items")
    if not isinstance(items, list):
        raise UnexpectedAnswer("expected a list of items")
    return Page(tuple(read(item) for item in items), answer.get("next_cursor"), answer.get("cursor"))
