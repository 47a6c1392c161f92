"""The gateway's handle of the process that reads definitions: started for the first, killed if it takes too long."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import orjson

from gateway.checking.worker import LENGTH_BYTES, READY
from gateway.problems import Problem
from schemas.refusals import Refusal

STARTING_S = 60.0
# Reads policies with the engine, which a gateway itself must not import; the two share only the pipe.
READER = "ops.definition_reader"


class Reader:
    """One process, which answers one question at a time, for the caller that has the turn; must be closed."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the process.

        Raises:
            Problem: 422, the definition takes too long, or too much memory; 503, the process does not start.
        """
        content = orjson.dumps(question)
        answered = False
        try:
            process = await self._running()
            async with asyncio.timeout(self._budget_s):
                reply = await _exchange(process, content)
            answered = True
        except TimeoutError as error:
            detail = (
                f"the definition takes longer than {self._budget_s:g} s to read: make it smaller or simpler"
            )
            raise Problem(Refusal.INVALID, detail) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Problem(
                Refusal.INVALID, "reading the definition takes more memory than is available"
            ) from error
        finally:
            # Also if the caller was cancelled: the answer to its question must not be taken for the next one's.
            if not answered:
                await self.close()
        return reply

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", READER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            # The start takes time on a busy machine, which does not count for the definition.
            try:
                async with asyncio.timeout(STARTING_S):
                    await _ready(self._process)
            except TimeoutError as error:
                raise Problem(
                    Refusal.UNAVAILABLE, "definitions cannot be read yet: try again", retry_after=1
                ) from error
        return self._process

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.communicate())


async def _ready(process: asyncio.subprocess.Process) -> None:
    if process.stdout is None:
        raise ConnectionError("the process has no pipes")
    await process.stdout.readexactly(len(READY))


async def _exchange(process: asyncio.subprocess.Process, content: bytes) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise ConnectionError("the process has no pipes")
    process.stdin.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)
    await process.stdin.drain()
    header = await process.stdout.readexactly(LENGTH_BYTES)
    reply: dict[str, Any] = orjson.loads(await process.stdout.readexactly(int.from_bytes(header, "big")))
    return reply
