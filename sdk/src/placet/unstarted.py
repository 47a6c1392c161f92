"""The calls of a turn that an attempt of this process has, or may have, consumed without beginning the function.

A proposal names an attempt, for which a release consumes the call at once. If the verdict comes late, as while the
decider is away, the agent's function has ended by then. Only this process knows that nothing was run under the
attempt: another worker that has the turn next needs a person to settle the call. So the turn is kept, and the
function runs again under its claim; and a worker that is stopped reports that the call did not run.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from placet import asks, clock
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import PASSING_ERRORS, NotFound, PlacetError
from placet.gate import is_idempotent, never_ran
from placet.lease import Lease, beating, lease_of
from placet.models import ToolCall
from placet.tries import Tries
from placet.turn import numbering_of
from placet.turn_errors import has_no_verdict

_log = logging.getLogger(__name__)
_NOT_TOLD = "that %s did not run could not be reported (%s): a person settles it"


class Unstarted:
    """Those of one turn."""

    def __init__(self, channel: Channel, claimed: ClaimedTurn) -> None:
        self._channel = channel
        self._execution_id = claimed.conversation_id
        self._tries = Tries(numbering_of(claimed), channel.unused)
        self._kept: list[asyncio.Task[None]] = []

    @property
    def may_be(self) -> bool:
        """True if there may be such calls."""
        return bool(self._tries.unstarted)

    def keep(self, call: ToolCall, held_from: float) -> None:
        """Renew the lease of such a call until its function begins: the agent may take long to make it again.

        Args:
            call: the call; nothing is kept of another one.
            held_from: a time, by `placet.clock`, at which the call was not consumed yet.
        """
        length_s = lease_of(call.raw)
        if length_s is None or not self._tries.has(call):
            return
        attempt_id = str(call.raw.get("attempt_id"))

        async def renew() -> Any:
            return await self._channel.ask(asks.heartbeat(call.execution_id, call.call_id, attempt_id))

        lease = Lease(length_s, call.raw.get("lease_until"), held_from)
        self._kept.append(asyncio.create_task(beating(lease, renew, lambda: not self._tries.has(call))))

    def keep_no_longer(self) -> None:
        """End these renewals."""
        for task in self._kept:
            task.cancel()

    async def withdraw(self, why: str) -> None:
        """Report such calls as failed, so that no person has to settle them; errors are logged.

        A call of an idempotent tool is left to the attempt that runs it after the lease.
        """
        for call_id in self._tries.unstarted:
            try:
                await self._withdraw(call_id, why)
            except NotFound:
                # A question, or a call that is not proposed.
                continue
            except PlacetError as error:
                _log.warning(_NOT_TOLD, f"the call {call_id}", error)

    async def _withdraw(self, call_id: str, why: str) -> None:
        call = await read_call(self._channel, self._execution_id, call_id)
        if (
            self._tries.has(call)
            and not await is_idempotent(self._channel, call.tool)
            and self._tries.has(call)
        ):
            # Before it is reported: nothing in this process can begin under the attempt any more.
            self._tries.drop(call_id)
            await never_ran(self._channel, call, str(call.raw.get("attempt_id")), why)


class LateVerdict:
    """What is known of the verdict on a call, each time that it is looked at."""

    def __init__(self, channel: Channel, call: ToolCall, within_s: float) -> None:
        """Begin to wait.

        Args:
            channel: to the gateway.
            call: the call without a verdict.
            within_s: how long to wait while it cannot be told that a decider still has to judge the call.
        """
        self.call = call
        # By `placet.clock`: when the call was last without a verdict.
        self.none_at = clock.now()
        self._channel = channel
        self._within_s = within_s
        self._until = clock.now() + within_s
        self._is_missing = False

    @property
    def is_awaited(self) -> bool:
        """True if there is none yet, and it is worth to wait for it."""
        return has_no_verdict(self.call) and clock.now() < self._until

    @property
    def is_put_off(self) -> bool:
        """True if the call is recorded without a verdict, as in a paused run: then no attempt has consumed it."""
        return has_no_verdict(self.call) and not self._is_missing

    async def look(self) -> None:
        """Read the call."""
        asked_at = clock.now()
        try:
            self.call = await read_call(self._channel, self.call.execution_id, self.call.call_id)
            self._is_missing = False
        except NotFound:
            # The proposal is on its way, or was refused: the function is told that when it makes the call again.
            self._is_missing = True
        except PASSING_ERRORS as error:
            _log.warning("the verdict of the call %s could not be read: %s", self.call.call_id, error)
            self._until = clock.now() + self._within_s
        if has_no_verdict(self.call):
            self.none_at = asked_at
            if not self.call.digest and not self._is_missing:
                # Not recorded: the turn could not be given back either, since the same decider decides that.
                self._until = clock.now() + self._within_s


async def read_call(channel: Channel, execution_id: str, call_id: str) -> ToolCall:
    """A call as it is now."""
    return await channel.one(ToolCall, asks.get_call(execution_id, call_id, None, None))
