"""A lean HTTP/1.1 client: one connection kept alive, one request at a time, JSON in and out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from ops.bench.websocket import Refused

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Rest:
    """One connection to the gateway, opened when it is needed, and again after the gateway closed it idle."""

    url: str
    token: str
    _streams: Streams | None = field(default=None, init=False)

    async def post(self, path: str, body: Mapping[str, Any], *expected: int) -> dict[str, Any]:
        """POST a body and wait for the answer.

        Raises:
            Refused: its status is none of those expected (200 and 201 when none is named).
        """
        reader, writer = await self._connected()
        content = orjson.dumps(body)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {urlsplit(self.url).netloc}\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        return await _answer(reader, expected or (200, 201))

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connected(self) -> Streams:
        if self._streams is None or self._streams[0].at_eof():
            await self.close()
            address = urlsplit(self.url)
            self._streams = await asyncio.open_connection(address.hostname, address.port)
        return self._streams


async def _answer(reader: asyncio.StreamReader, expected: tuple[int, ...]) -> dict[str, Any]:
    head = await reader.readuntil(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content = await reader.readexactly(int(headers["content-length"]))
    if int(status.split()[1]) not in expected:
        raise Refused(f"the gateway answered {status}: {content[:500]!r}")
    answer: dict[str, Any] = orjson.loads(content)
    return answer
