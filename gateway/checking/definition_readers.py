"""The reading of definitions: outside of the gateway's event loop, with limits on time and on waiting requests.

The author of a definition determines how much work it is to read, so it is read in separate processes, which are
killed if they take too long. Publishing has a process of its own: many users may have definitions checked or calls
assessed, and an operator who must forbid something now does not wait for them. Tenants take turns, and so do the
subjects of each.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from gateway.checking.documents import Kind
from gateway.checking.reader_process import Reader
from gateway.problems import Problem
from gateway.shares.turns import Turns
from gateway.shares.work import Owner
from schemas.refusals import Refusal

BUDGET_S = 10.0
WAITING_OF_A_SUBJECT_MAX = 4


class PolicyRead(NamedTuple):
    """The engine's result for a policy.

    `text` is the text to publish, None if there are errors; `problems` are its errors and warnings, and `difference`
    its changes to the version in force, if there is one and the policy is well-formed.
    """

    text: str | None
    problems: list[dict[str, Any]]
    difference: dict[str, Any] | None


class DefinitionReaders:
    """Reads definitions in processes that are started with the first definition; must be closed."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._publishing = _Queue(budget_s)
        self._checking = _Queue(budget_s)
        self._assessing = _Queue(budget_s)

    async def text_of(self, owner: Owner, kind: Kind, name: str, given: Any) -> str:
        """Return a definition as the canonical JSON to be published; see `documents.text_of`.

        Raises:
            Problem: the definition is invalid; 422, it takes too long; 429, too many of the owner's wait; 503.
        """
        reply = await self._publishing.asked(owner, {"kind": kind, "name": name, "given": given})
        return str(reply["text"])

    async def policy(self, owner: Owner, question: dict[str, Any], *, publishes: bool) -> PolicyRead:
        """Read a policy with the engine.

        Args:
            owner: the caller.
            question: see `ops.definition_reader`.
            publishes: True if it is to be published, and not only checked.

        Raises:
            Problem: as `text_of`, except for errors of the policy.
        """
        queue = self._publishing if publishes else self._checking
        reply = await queue.asked(owner, {"kind": "policy", "tenant": owner[0], **question})
        return PolicyRead(reply["text"], reply["problems"], reply["difference"])

    async def assessment(self, owner: Owner, question: dict[str, Any]) -> dict[str, Any]:
        """Have the engine assess calls; the question, the answer: see `ops.assessment`. Errors as `text_of`."""
        return await self._assessing.asked(owner, {"kind": "assessment", "tenant": owner[0], **question})

    async def close(self) -> None:
        """End the processes."""
        await self._publishing.reader.close()
        await self._checking.reader.close()
        await self._assessing.reader.close()


class _Queue:
    """A process and its waiting requests: one at a time of each tenant, and of each of its subjects."""

    def __init__(self, budget_s: float) -> None:
        self.reader = Reader(budget_s)
        self._turn = asyncio.Lock()
        self._tenants = Turns(1)
        self._subjects = Turns(1)

    async def asked(self, owner: Owner, question: dict[str, Any]) -> dict[str, Any]:
        if self._subjects.wanted(owner) >= WAITING_OF_A_SUBJECT_MAX:
            raise Problem(Refusal.QUOTA, "several of your definitions are being checked: wait", retry_after=1)
        async with self._subjects.of(owner), self._tenants.of(owner[0]), self._turn:
            reply = await self.reader.ask(question)
        if "code" not in reply:
            return reply
        raise Problem(Refusal(reply["code"]), reply["detail"], **reply["fields"])
