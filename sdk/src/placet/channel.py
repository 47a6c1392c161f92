"""From requests to typed answers: what every part of the client stands on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from placet.errors import StillHeld, Unreachable, refusal
from placet.models import Object, Page, ToolCall
from placet.parsing import UnexpectedAnswer, parse
from placet.transport.port import Patience, Reply, Request, Transport
from placet.transport.retry import delays

T = TypeVar("T")


@dataclass(frozen=True)
class Channel:
    """A transport, and the patience to use it with."""

    transport: Transport
    patience: Patience
    # The versions of the tools that this client found published as they were declared, or published itself.
    registered: set[str] = field(default_factory=set, compare=False, repr=False)

    async def ask(self, request: Request) -> Any:
        """The body of the answer.

        Raises:
            Refused: Placet said no.
            Unreachable: nobody answered.
        """
        return answered(await self.transport.send(request))

    async def one(self, cls: type[T], request: Request, **known: Any) -> T:
        """The answer as one resource; `known` is what the request said and the answer may leave out."""
        body = await self.ask(request)
        return parse(cls, {**known, **body} if known and isinstance(body, Mapping) else body)

    async def page(self, cls: type[T], request: Request) -> Page[T]:
        """The answer as a part of a list."""
        return read_page(lambda item: parse(cls, item), await self.ask(request))

    async def objects(self, request: Request) -> Page[Object]:
        """The answer as a part of a list of objects, as they came."""
        return read_page(lambda item: item, await self.ask(request))

    async def decided(self, call: ToolCall, timeout_s: float | None) -> ToolCall:
        """Wait until a call is no longer pending.

        A gateway that is away is waited for, up to `Patience.outage_s`: a person's time is longer than a
        restart.

        Raises:
            StillHeld: `timeout_s` is over.
            Unreachable: the gateway was away for too long.
        """
        clock = asyncio.get_running_loop().time
        started_at = heard_at = clock()
        pauses = delays(self.patience)
        while call.pending:
            left_s = _left(timeout_s, clock() - started_at)
            if left_s <= 0:
                raise StillHeld(call, timeout_s or 0.0)
            try:
                reply = await self.transport.decision((call.execution_id, call.call_id), left_s)
                call, heard_at, pauses = parse(ToolCall, answered(reply)), clock(), delays(self.patience)
            except Unreachable:
                gone_s, left_s = clock() - heard_at, _left(timeout_s, clock() - started_at)
                if gone_s >= self.patience.outage_s or left_s <= 0:
                    raise
                await asyncio.sleep(next(pauses))
        return call


def _left(timeout_s: float | None, passed_s: float) -> float:
    return float("inf") if timeout_s is None else timeout_s - passed_s


def answered(reply: Reply) -> Any:
    """The body of a reply, or its refusal raised."""
    if not reply.ok:
        raise refusal(reply.status, reply.body)
    return reply.body


def read_page(read: Callable[[Any], T], body: Any) -> Page[T]:
    """A list answer, `{items, next_cursor}`.

    Raises:
        UnexpectedAnswer: it is no list.
    """
    answer = body if isinstance(body, Mapping) else {"items": body}
    items = answer.get("items")
    if not isinstance(items, list):
        raise UnexpectedAnswer("expected a list of items")
    return Page(tuple(read(item) for item in items), answer.get("next_cursor"), answer.get("cursor"))
