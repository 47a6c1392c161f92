"""A lean client of `placet.v1`: requests pipelined by `ref`, pushed messages handed to a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection, connect

Message = dict[str, Any]
OnPush = Callable[[Message], None]
ANSWER_TIMEOUT_S = 60.0


class Refused(RuntimeError):
    """The gateway answered with something else than was expected."""


def ignore(message: Message) -> None:
    """Hear a pushed message and do nothing with it."""


@dataclass(slots=True)
class Socket:
    """One authenticated connection."""

    connection: ClientConnection
    on_push: OnPush
    name: str
    _answers: dict[str, asyncio.Future[Message]] = field(default_factory=dict)
    _asked: int = 0

    async def send(self, frame: Mapping[str, Any]) -> asyncio.Future[Message]:
        """Ask something; the answer comes as a `reply`. Requests leave in the order of the calls."""
        self._asked += 1
        ref = f"{self.name}-{self._asked}"
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[ref] = answer
        await self.connection.send(orjson.dumps({**frame, "ref": ref}).decode())
        return answer

    async def ask(self, frame: Mapping[str, Any], *expected: int) -> Message:
        """Ask and wait.

        Returns:
            The reply's body.

        Raises:
            Refused: its status is none of those expected (200 when none is named).
        """
        return body_of(await (await self.send(frame)), *expected)

    async def tell(self, frame: Mapping[str, Any]) -> None:
        """Send what has no reply."""
        await self.connection.send(orjson.dumps(frame).decode())

    async def read(self) -> None:
        """Hand out what comes, until the connection ends."""
        try:
            async for text in self.connection:
                self._receive(orjson.loads(text))
        except Refused as error:
            self._fail(error)
        else:
            self._fail(Refused("the connection was closed"))

    def _receive(self, message: Message) -> None:
        if message["type"] == "reply":
            answer = self._answers.pop(message["ref"])
            if not answer.done():
                answer.set_result(message)
        elif message["type"] in ("error", "resync_required"):
            raise Refused(f"the gateway says {message}")
        else:
            self.on_push(message)

    def _fail(self, error: Exception) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)


@asynccontextmanager
async def opened_socket(url: str, token: str, name: str, on_push: OnPush = ignore) -> AsyncIterator[Socket]:
    """A connection, authenticated; `name` makes its refs its own."""
    address = url.replace("http", "ws", 1) + "/v1/ws"
    async with connect(
        address,
        subprotocols=["placet.v1"],  # type: ignore[list-item]
        compression=None,
        max_size=None,
        open_timeout=ANSWER_TIMEOUT_S,
        ping_interval=None,
    ) as connection:
        socket = Socket(connection, on_push, name)
        await socket.tell({"type": "authenticate", "token": token})
        reading = asyncio.create_task(socket.read())
        try:
            yield socket
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


def body_of(reply: Message, *expected: int) -> Message:
    """A reply's body.

    Raises:
        Refused: its status is none of those expected (200 when none is named).
    """
    if reply["status"] not in (expected or (200,)):
        raise Refused(f"the gateway answered {reply['status']}: {reply['body']}")
    body: Message = reply["body"]
    return body
