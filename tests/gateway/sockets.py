"""A WebSocket client for tests: what was sent, what came, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic import BaseModel
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from gateway.sockets.protocol import SERVER_MESSAGES, type_of

PATIENCE_S = 60.0
MODELS: dict[str, type[BaseModel]] = {type_of(model): model for model in SERVER_MESSAGES}


def check_named(message: dict[str, Any]) -> None:
    """Every field of a message, at any depth, is one that the published protocol names."""
    model = MODELS[message["type"]].model_validate(message)
    unknown = sorted(_unnamed(model, message["type"]))
    assert unknown == [], unknown


def _unnamed(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{where}.{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from _unnamed(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from _unnamed(one, f"{where}[]")


@dataclass
class Socket:
    """One connection. Every message that comes is checked against the published protocol."""

    connection: ClientConnection
    kept: list[dict[str, Any]] = field(default_factory=list)
    greeting: dict[str, Any] = field(default_factory=dict)

    async def send(self, **message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        async with asyncio.timeout(PATIENCE_S):
            message: dict[str, Any] = json.loads(await self.connection.recv())
        check_named(message)
        return message

    async def next(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next message of a kind with these fields; others that come meanwhile are kept."""
        for message in self.kept:
            if _fits(message, kind, fields):
                self.kept.remove(message)
                return message
        while not _fits(message := await self.receive(), kind, fields):
            self.kept.append(message)
        return message

    async def ask(self, kind: str, **message: Any) -> dict[str, Any]:
        """The reply to a message with a fresh ref."""
        ref = message.pop("ref", uuid4().hex)
        await self.send(type=kind, ref=ref, **message)
        return await self.next("reply", ref=ref)

    async def start(self, execution_id: str) -> None:
        reply = await self.ask("start_execution", body={"execution_id": execution_id})
        assert reply["status"] in (200, 201), reply

    async def propose(self, execution_id: str, call_id: str, tool: str, **more: Any) -> dict[str, Any]:
        body = {"call_id": call_id, "tool": tool, "arguments": {"amount": 5}, **more}
        return await self.ask("propose", execution_id=execution_id, body=body)

    async def subscribe(self, *channels: str, cursor: str | None = None) -> list[dict[str, Any]]:
        """Subscribe; without a cursor, the items of the snapshots."""
        if cursor is not None:
            await self.send(type="subscribe", channels=channels, cursor=cursor)
            return []
        await self.send(type="subscribe", channels=channels)
        items: list[dict[str, Any]] = []
        for channel in channels:
            more = True
            while more:
                part = await self.next("snapshot", channel=channel)
                items += part["items"]
                more = part["more"]
        return items


def _fits(message: dict[str, Any], kind: str, fields: dict[str, Any]) -> bool:
    return message["type"] == kind and all(message.get(name) == value for name, value in fields.items())


def raw_socket(url: str, query: str = "", **settings: Any) -> connect:
    """A connection on which nothing was said yet."""
    defaults: dict[str, Any] = {"subprotocols": [Subprotocol("placet.v1")], "compression": None}
    if "origin" in settings:
        settings["origin"] = Origin(settings["origin"])
    return connect(f"{url.replace('http', 'ws', 1)}/v1/ws{query}", **{**defaults, **settings})


@asynccontextmanager
async def open_socket(url: str, token: str) -> AsyncIterator[Socket]:
    """An authenticated connection."""
    async with raw_socket(url) as connection:
        socket = Socket(connection)
        await socket.send(type="authenticate", token=token)
        socket.greeting = await socket.next("authenticated")
        yield socket
