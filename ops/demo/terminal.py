"""Lines from the terminal, read without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
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
        """The next line, without its line break; None at the end of input.

        On a terminal it is one that is typed from now on: what was typed before the question is no answer to it.
        """
        if os.isatty(self._descriptor):
            self._forget()
        return await self._queue.get()

    def _forget(self) -> None:
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        self._rest = b""
        while not self._queue.empty():
            if self._queue.get_nowait() is None:
                self._queue.put_nowait(None)
                return

    def _read(self) -> None:
        chunk = os.read(self._descriptor, CHUNK_BYTES)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._queue.put_nowait(line.decode("utf-8", "replace").strip())
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._queue.put_nowait(None)
