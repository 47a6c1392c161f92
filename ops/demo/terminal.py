"""Lines from the terminal, read without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
from types import TracebackType

CHUNK_BYTES = 65_536


class Lines:
    """The lines that a person types, in order; None once the input has ended."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""

    async def __aenter__(self) -> Lines:
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)

    async def next(self) -> str | None:
        """The next line, without its line break; None at the end of input."""
        return await self._queue.get()

    def _read(self) -> None:
        chunk = os.read(self._descriptor, CHUNK_BYTES)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._queue.put_nowait(line.decode("utf-8", "replace").strip())
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._queue.put_nowait(None)
