"""Where a gateway has definitions read: beside its event loop, within a bound of time and of how many wait.

The author of a definition decides how much work reading it is, so it is done in one process beside the gateway, which
is killed when it takes too long. A tenant waits for its own definitions, never in front of more than a few others.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Any, NamedTuple

import orjson

from gateway.checking.documents import Kind
from gateway.checking.worker import LENGTH_BYTES, READY
from gateway.problems import Problem
from schemas.refusals import Refusal

BUDGET_S = 10.0
STARTING_S = 60.0
WAITING_OF_A_TENANT_MAX = 4
# Reads policies with the engine, which a gateway itself has no business with; the two share nothing but the pipe.
READER = "ops.definition_reader"


class PolicyRead(NamedTuple):
    """What the engine says of a policy.

    `text` is what would be published, None where there are errors; `problems` are its errors and warnings, and
    `difference` what it would change of the version in force, where there is one and the form is right.
    """

    text: str | None
    problems: list[dict[str, Any]]
    difference: dict[str, Any] | None


class DefinitionDesk:
    """Reads definitions in a process that is started with the first one; to be closed."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._budget_s = budget_s
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process_id(self) -> int | None:
        """The process in force; None before the first definition."""
        return None if self._process is None else self._process.pid

    async def text_of(self, tenant: str, kind: Kind, name: str, given: Any) -> str:
        """The definition as canonical JSON; see `documents.text_of`.

        Raises:
            Problem: what is wrong with it; 422, it takes too long; 429, too many of the tenant's wait; 503.
        """
        reply = await self._asked(tenant, {"kind": kind, "name": name, "given": given})
        return str(reply["text"])

    async def policy(self, tenant: str, question: dict[str, Any]) -> PolicyRead:
        """What the engine says of a policy.

        Args:
            tenant: whose.
            question: see `ops.definition_reader`.

        Raises:
            Problem: as `text_of`, apart from what is wrong with the policy.
        """
        reply = await self._asked(tenant, {"kind": "policy", "tenant": tenant, **question})
        return PolicyRead(reply["text"], reply["problems"], reply["difference"])

    async def _asked(self, tenant: str, question: dict[str, Any]) -> dict[str, Any]:
        if self._waiting[tenant] >= WAITING_OF_A_TENANT_MAX:
            raise Problem(Refusal.QUOTA, "several definitions of yours are being read: wait", retry_after=1)
        self._waiting[tenant] += 1
        try:
            async with self._turn:
                reply = await self._ask(question)
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]
        if "code" not in reply:
            return reply
        raise Problem(Refusal(reply["code"]), reply["detail"], **reply["fields"])

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
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
                Refusal.INVALID, "reading the definition takes more memory than there is"
            ) from error
        finally:
            # Also where who asked went away: what it asked must not be taken for the next one's answer.
            if not answered:
                await self._end()
        return reply

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", READER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            # Starting takes its own time on a busy machine: none of it is the definition's.
            try:
                async with asyncio.timeout(STARTING_S):
                    await _ready(self._process)
            except TimeoutError as error:
                raise Problem(
                    Refusal.UNAVAILABLE, "definitions cannot be read yet: try again", retry_after=1
                ) from error
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.communicate())

    async def close(self) -> None:
        """End the process."""
        await self._end()


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
