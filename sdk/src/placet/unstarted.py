"""The calls of a turn that an attempt of this process has, or may have, consumed without beginning the function.

A proposal names an attempt, for which a release consumes the call at once. If the verdict comes late, as while the
decider is away, or the agent waits no longer for its answer, as `asyncio.TaskGroup` does when a question beside the
call waits for a person, the agent's function has ended by then. Only this process knows that nothing was run under
the attempt: another worker that has the turn next needs a person to settle the call. So the turn is kept, and the
function runs again under its claim; and a worker that is stopped, or whose turn ends without the call, reports that
the call did not run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from placet import asks, clock
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import PASSING_ERRORS, NotFound, PlacetError
from placet.gate import is_idempotent, never_ran, read_call
from placet.lease import Lease, beating, lease_of
from placet.models import HumanRequest, ToolCall
from placet.tries import Tries
from placet.turn import numbering_of
from placet.turn_errors import has_no_verdict, shown

_log = logging.getLogger(__name__)
_NOT_TOLD = "that the call %s did not run could not be reported (%s): a person settles it"


class Unstarted:
    """Those of one turn."""

    def __init__(self, channel: Channel, claimed: ClaimedTurn) -> None:
        self._channel = channel
        self._execution_id = claimed.conversation_id
        self._tries = Tries(numbering_of(claimed), channel.unused)
        self._kept: dict[tuple[str, str], asyncio.Task[None]] = {}

    @property
    def may_be(self) -> bool:
        """True if there may be such calls."""
        return bool(self._tries.unstarted)

    async def holds(self, lost: asyncio.Task[None], within_s: float, every_s: float) -> bool:
        """True if the turn cannot be given back, since of its calls only this process can run one.

        The lease of such a call is renewed from then on; one of an idempotent tool can run elsewhere after its lease.

        Args:
            lost: done once the turn is not this worker's any more.
            within_s: how long to wait for a call that cannot be found, as it may be on its way, or has no verdict.
            every_s: the pause between two looks.
        """
        names = self._tries.unstarted
        looks = (self._is_held(name, lost, within_s, every_s) for name in names)
        found = await asyncio.gather(*looks, return_exceptions=True)
        for name, one in zip(names, found, strict=True):
            if isinstance(one, Exception):
                _log.warning("whether the call %s was consumed could not be read: %s", name, shown(one))
        return True in found

    async def _is_held(self, name: str, lost: asyncio.Task[None], within_s: float, every_s: float) -> bool:
        attempt = self._tries.unused(name)
        if attempt is None:
            return False
        late = LateVerdict(self._channel, ToolCall(self._execution_id, name, "proposed"), within_s)
        # It may have been consumed since the first request.
        late.none_at = attempt.asked_at
        await late.look()
        # What was not proposed is a question: there is no such call, and none comes.
        while late.is_awaited and not lost.done() and not (late.is_missing and attempt.by is None):
            await asyncio.wait({lost}, timeout=every_s)
            await late.look()
        if late.is_unknown:
            return True
        if not self._tries.has(late.call) or await is_idempotent(self._channel, late.call.tool):
            return False
        self.keep(late.call, late.none_at)
        return True

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
        renewing = self._kept.get((call.call_id, attempt_id))
        if renewing is not None and not renewing.done():
            return

        async def renew() -> Any:
            try:
                return await self._channel.ask(asks.heartbeat(call.execution_id, call.call_id, attempt_id))
            except PlacetError:
                raise
            except Exception as error:
                # Of the client's token source, for example: the renewals would end by it, and nobody would see why.
                _log.warning("the lease of the call %s was not renewed: %s", call.call_id, shown(error))
                raise PlacetError(shown(error)) from None

        lease = Lease(length_s, call.raw.get("lease_until"), held_from)
        beats = beating(lease, renew, lambda: not self._tries.has(call))
        self._kept[call.call_id, attempt_id] = asyncio.create_task(beats)

    def keep_no_longer(self) -> None:
        """End these renewals."""
        for task in self._kept.values():
            task.cancel()

    async def withdraw(self, why: str, within_s: float) -> None:
        """Report such calls as failed, so that no person has to settle them; errors are logged.

        A call of an idempotent tool is left to the attempt that runs it after the lease.
        """
        await self._withdraw_all(self._tries.unstarted, why, within_s)

    async def end(self, why: str, within_s: float) -> None:
        """The same for a turn that is over, whose attempts are forgotten; done to its end also if this is cancelled.

        Calls that the agent has left to run by themselves are left alone: they run when they have permission.
        """
        ending = asyncio.create_task(self._end(why, within_s))
        try:
            await asyncio.shield(ending)
        finally:
            # If the worker is being stopped, no other one can report it.
            await asyncio.wait({ending})

    async def _end(self, why: str, within_s: float) -> None:
        names = [name for name in self._tries.unstarted if not self._tries.is_under_way(name)]
        await self._withdraw_all(names, why, within_s)
        for name in names:
            # It can have been made again meanwhile.
            if not self._tries.is_under_way(name):
                self._tries.drop(name)

    async def _withdraw_all(self, names: Iterable[str], why: str, within_s: float) -> None:
        # All at once: one that is not answered must not take the time of the others.
        await asyncio.gather(*(self._try_to_withdraw(name, why, within_s) for name in names))

    async def _try_to_withdraw(self, call_id: str, why: str, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._withdraw(call_id, why)
        except NotFound:
            # A question, or a call that is not proposed.
            return
        except TimeoutError:
            _log.warning(_NOT_TOLD, call_id, f"no answer within {within_s:g} s")
        except Exception as error:
            # Also of the client's token source.
            _log.warning(_NOT_TOLD, call_id, shown(error))

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
        # It cannot be found.
        self.is_missing = False

    @property
    def is_awaited(self) -> bool:
        """True if there is none yet, and it is worth to wait for it."""
        return has_no_verdict(self.call) and clock.now() < self._until

    @property
    def is_put_off(self) -> bool:
        """True if the call is recorded without a verdict, as in a paused run: then no attempt has consumed it."""
        return has_no_verdict(self.call) and not self.is_missing

    @property
    def is_unknown(self) -> bool:
        """True if it is not recorded, or could not be read: an attempt may consume it, or has done so."""
        return self.is_put_off and not self.call.digest

    async def look(self) -> None:
        """Read the call."""
        asked_at = clock.now()
        try:
            self.call = await read_call(self._channel, self.call.execution_id, self.call.call_id)
            self.is_missing = False
        except NotFound:
            # The proposal is on its way, or was refused: the function is told that when it makes the call again.
            self.is_missing = True
        except PASSING_ERRORS as error:
            _log.warning("the verdict of the call %s could not be read: %s", self.call.call_id, error)
            self._until = clock.now() + self._within_s
        if has_no_verdict(self.call):
            self.none_at = asked_at
            if not self.call.digest and not self.is_missing:
                # Not recorded: the turn could not be given back either, since the same decider decides that.
                self._until = clock.now() + self._within_s


async def until_ended(
    channel: Channel, on: HumanRequest | ToolCall, lost: asyncio.Task[None], every_s: float
) -> None:
    """Wait until a person has answered a question, decided a call or settled it, or the turn is lost."""
    is_open = True
    while is_open and not lost.done():
        await asyncio.wait({lost}, timeout=every_s)
        try:
            is_open = await _is_open(channel, on)
        except PASSING_ERRORS as error:
            _log.warning("what a turn waits for could not be read, and it is tried again: %s", error)


async def _is_open(channel: Channel, on: HumanRequest | ToolCall) -> bool:
    if isinstance(on, HumanRequest):
        read = asks.get_request(on.request_id, on.execution_id, None)
        return (await channel.one(HumanRequest, read)).pending
    call = await read_call(channel, on.execution_id, on.call_id)
    return call.pending or call.status == "outcome_unknown"
