"""Calls that the policy allows, and the ways in which an agent may take them through the gate."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import httpx

from ops.bench.agent import (
    ACCEPTED,
    IN_FLIGHT,
    allowed,
    call_body,
    consume,
    consumed,
    judged,
    propose,
    released,
    result,
    start_many,
)
from ops.bench.rest import Rest
from ops.bench.site import Site
from ops.bench.websocket import Message, Socket

Call = Callable[[int], Awaitable[None]]


async def takes_attempts(url: str) -> bool:
    """Whether the server at an address takes the attempt with the proposal, by its own document."""
    async with httpx.AsyncClient() as client:
        document = (await client.get(f"{url}/openapi.json")).raise_for_status().json()
    proposal = document["components"]["schemas"].get("ProposeToolCall", {})
    return "attempt_id" in proposal.get("properties", {})


@dataclass(slots=True)
class Calls:
    """The calls of one run: fresh executions for each part, and the ways to propose.

    `takes_attempts` is whether a proposal may bring the attempt that would run the call.
    """

    site: Site
    socket: Socket
    connections: Sequence[Rest]
    name: str
    parts: int = 0
    takes_attempts: bool = False

    async def by_socket(self) -> Call:
        """Proposals over the WebSocket."""
        part = await self._part()

        async def one(number: int) -> None:
            await allowed(self.socket, propose(f"{part}-{number % IN_FLIGHT}", f"c{number}"))

        return one

    async def by_rest(self) -> Call:
        """Proposals by REST, each on a connection that is free."""
        part = await self._part()
        free = list(self.connections)

        async def one(number: int) -> None:
            connection = free.pop()
            path, body = f"/v1/executions/{part}-{number % IN_FLIGHT}/tool-calls", call_body(f"c{number}")
            released(await judged(lambda: connection.post(path, body, 200, ACCEPTED)))
            free.append(connection)

        return one

    async def until_it_may_run(self) -> Call:
        """Calls that are proposed and consumed, over the WebSocket: what an agent waits for before it acts.

        One round trip where the server takes the attempt with the proposal, else two.
        """
        part = await self._part()

        async def one(number: int) -> None:
            await self._begun(part, number)

        return one

    async def to_the_end(self) -> Call:
        """Calls that are proposed, consumed and reported, over the WebSocket."""
        part = await self._part()

        async def one(number: int) -> None:
            call, attempt_id = await self._begun(part, number)
            await self.socket.ask(result(call, attempt_id))

        return one

    async def _begun(self, part: str, number: int) -> tuple[Message, str]:
        where, attempt_id = (f"{part}-{number % IN_FLIGHT}", f"c{number}"), uuid.uuid4().hex
        if self.takes_attempts:
            asked = propose(*where, attempt_id=attempt_id)
            call = await judged(lambda: self.socket.ask(asked, 200, ACCEPTED))
            return consumed(call, attempt_id), attempt_id
        call = await allowed(self.socket, propose(*where))
        await self.socket.ask(consume(call, attempt_id))
        return call, attempt_id

    async def _part(self) -> str:
        self.parts += 1
        part = f"{self.name}-{self.parts}"
        await start_many(self.socket, [f"{part}-{number}" for number in range(IN_FLIGHT)], self.site.agent)
        return part
