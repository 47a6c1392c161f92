"""Questions to people, and the variables that answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placet import asks, tracing
from placet.channel import Channel
from placet.errors import DigestMismatch, HITLPending, NotReleased, why_unanswered
from placet.ids import attempt_id as new_attempt_id
from placet.lists import checked_list
from placet.models import HumanRequest
from placet.secrets import ForgedSecret, restored
from placet.transport.rest import MOST_WAIT_S


@dataclass(frozen=True)
class AsyncRequests:
    """Questions to people."""

    channel: Channel
    agent: str | None = None

    async def ask(
        self,
        /,
        question: str,
        *,
        kind: str = "clarification",
        execution_id: str | None = None,
        request_id: str | None = None,
        options: Sequence[Any] | None = None,
        fields: Sequence[Any] | None = None,
        decision_type: str | None = None,
        timeout_seconds: float | None = None,
        **more: Any,
    ) -> HumanRequest:
        """Ask a person: kind clarification, decision, env_var or permission.

        Raises:
            TypeError: `options` or `fields` is not a list.
        """
        given = {
            "question": question,
            "kind": kind,
            "execution_id": execution_id,
            "agent": self.agent if execution_id is None else None,
            "request_id": request_id,
            "options": None if options is None else checked_list(options, "options"),
            "fields": None if fields is None else checked_list(fields, "fields"),
            "decision_type": decision_type,
            "timeout_seconds": timeout_seconds,
            **more,
        }
        body = {name: value for name, value in given.items() if value is not None}
        with tracing.span("placet.ask", _facts(body)):
            return await self.channel.one(HumanRequest, asks.ask_person(body))

    async def get(
        self, request_id: str, *, execution_id: str | None = None, wait_s: float | None = None
    ) -> HumanRequest:
        """The current state of a question; returns at once if there is a response, else after `wait_s`.

        Raises:
            Refused: `id_reused`, several executions have a question of this id: name one.
        """
        return await self.channel.one(HumanRequest, asks.get_request(request_id, execution_id, wait_s))

    async def wait(
        self,
        request: HumanRequest | str,
        *,
        execution_id: str | None = None,
        timeout_s: float | None = None,
    ) -> HumanRequest:
        """Wait for the answer to a question, given itself or by id; after `timeout_s` returns its current state.

        Raises:
            Refused: `id_reused`, several executions have a question of this id: give the question, or name one.
            Unreachable, Unavailable: no gateway could be reached for too long.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + (float("inf") if timeout_s is None else timeout_s)
        request_id = request if isinstance(request, str) else request.request_id
        where = execution_id if isinstance(request, str) else request.execution_id

        async def look() -> HumanRequest:
            wait_s = max(min(until - clock(), MOST_WAIT_S), 0.0)
            return await self.get(request_id, execution_id=where, wait_s=wait_s)

        while True:
            found = await self.channel.patiently(look, until - clock())
            if not found.pending or clock() >= until:
                return found

    async def take_secrets(
        self, request: HumanRequest, *, attempt_id: str | None = None
    ) -> Mapping[str, str]:
        """The variables that answered an env_var request: delivered once, to this process.

        The same `attempt_id` may ask again for five minutes; it is a fresh one by default.

        Raises:
            NotReleased: they were not given; `detail` says why.
            HITLPending: nobody has given them yet, as far as `request` says.
            AlreadyConsumed: another process has them.
            Expired: they were erased.
            DigestMismatch: the delivered values are not those in the log.
        """
        if request.pending:
            raise HITLPending(request)
        if request.response is None:
            why = why_unanswered(request)
            raise NotReleased("not_released", 0, f"the variables were not given: {why}")
        answer = await self.channel.ask(
            asks.take_secrets(request.request_id, request.execution_id, attempt_id or new_attempt_id())
        )
        self.channel.exposed.add()
        try:
            found = restored(request.response, answer["secrets"])
        except ForgedSecret as error:
            raise DigestMismatch("digest_mismatch", 0, str(error)) from error
        return dict(found)


def _facts(body: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of a span about a question: its ids and its kind."""
    named = ("execution_id", "request_id", "kind")
    return {f"placet.{name}": body[name] for name in named if isinstance(body.get(name), str)}
