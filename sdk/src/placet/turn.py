"""The agent's side of a conversation: one turn, as an agent's function has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from placet import asks, clock
from placet.channel import Channel
from placet.chat_models import ChatMessage, ClaimedTurn
from placet.errors import PASSING_ERRORS, NotReleased
from placet.execution import AsyncExecution
from placet.hitl import HITLHandler
from placet.lease import Lease
from placet.replies import checked_reply

AgentFunction = Callable[["AsyncTurn"], Awaitable[str | None]]


class AsyncTurn:
    """One message to an agent, and what the agent does about it.

    Another process takes the turn on if this one is lost, and calls the agent's function again from its beginning:
    questions that were answered return their answers, gated functions that ran return their results without running
    again, and what was said is not said twice.

    Attributes:
        conversation_id: the conversation, which is also the id of its execution.
        turn_id: the message's id.
        message: its text.
        sent_by: who sent it.
        run: the execution: `run.gated`, `run.ask`, `run.ask_env`.
    """

    def __init__(
        self, channel: Channel, agent: str, claimed: ClaimedTurn, wait_s: float | None = None
    ) -> None:
        self.conversation_id = claimed.conversation_id
        self.turn_id = claimed.turn_id
        self.message = claimed.text
        self.sent_by = claimed.sent_by
        self.claimed = claimed
        self.run = AsyncExecution(channel, agent, claimed.conversation_id, {}, numbering_of(claimed), wait_s)
        self._wait_s = wait_s
        self._channel = channel
        self._said = 0
        self._saying = asyncio.Lock()
        # A reply that may have been posted or not: its number is taken until that is known.
        self._undecided: dict[str, Any] | None = None
        # What was to be said with that number: another text if the number has one of an earlier run.
        self._meant: tuple[str, dict[str, Any]] | None = None
        # Such a reply of an earlier run of the function: its number has this text, whatever is said now.
        self._left: dict[str, Any] | None = None
        self._is_over = False
        # From now on, since how long the claim waited for a turn does not count.
        self.lease = Lease(claimed.lease_seconds, claimed.raw.get("lease_until"), clock.now())

    @cached_property
    def hitl(self) -> HITLHandler:
        """Questions to people as functions, within this turn."""
        return HITLHandler(self.run, wait_s=self._wait_s)

    async def begun_again(self) -> AsyncTurn:
        """The turn for another run of the function from its beginning, under the same claim and its lease.

        Nothing more is said under this one: what still runs of the earlier run has no turn any more.
        """
        async with self._saying:
            self._is_over = True
        claimed = replace(self.claimed, replies=max(self.claimed.replies, self._said))
        again = AsyncTurn(self._channel, claimed.agent, claimed, self._wait_s)
        again.lease, again._left = self.lease, self._undecided or self._left
        return again

    async def say(self, /, text: str, **details: Any) -> None:
        """Say something before the turn is over; `details` are kept beside it, for the agent's later turns.

        Raises:
            TypeError: it is no text, or one with a coroutine that was never awaited.
        """
        checked_reply(text)
        # One after the other: a reply is refused before the one with the number before its own.
        async with self._saying:
            if self._is_over:
                raise NotReleased("not_released", 409, "the agent's function was begun again for this turn")
            if (undecided := self._undecided) is not None:
                await self._post(undecided)
                if self._meant == (text, details):
                    # Said again because it was not known whether it had been said.
                    return
            number = self._said + 1
            if number <= self.claimed.replies:
                self._said = number
                return
            self._meant = text, details
            left = self._left if self._left is not None and self._left["number"] == number else None
            await self._post(left or {"number": number, "text": text, "details": details})

    async def _post(self, reply: dict[str, Any]) -> None:
        self._undecided = reply
        asked_at = self.lease.asked()
        try:
            answer = await self._channel.ask(asks.post_reply(self.claimed, **reply))
        except (*PASSING_ERRORS, asyncio.CancelledError):
            raise
        except BaseException:
            # Nothing has this number: the next reply takes it.
            self._undecided = None
            raise
        self._undecided = None
        self._said = reply["number"]
        self.lease.answered(answer, asked_at)

    async def history(self) -> list[ChatMessage]:
        """All messages of the conversation so far, in order; the last one of role `user` may be a later turn's."""
        found: list[ChatMessage] = []
        cursor: str | None = None
        while True:
            page = await self._channel.page(
                ChatMessage, asks.list_messages(self.conversation_id, cursor, self.claimed.cursor)
            )
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found


def numbering_of(claimed: ClaimedTurn) -> str:
    """What equal calls and questions are numbered within: equal calls in two turns are two calls."""
    return f"{claimed.conversation_id}/{claimed.turn_id}"
