"""One attempt at a turn: the agent's function runs under a renewed lease, and what it ends with is reported.

What it returned is the last reply, and the turn is completed. What it raised fails the turn, except:
* an error that a person has to end first (`HITLPending`, `StillHeld`, `OutcomeUnknown`, `ResultNotReported`): the
  turn is given back until then, and the function runs again;
* an error that passes (`acts` is "retry"): the turn is given back after a pause, which grows each time.
A turn is not given back while a call of it may be consumed for an attempt of this process under which nothing was
run: the function runs again under the same claim, once a person has ended what it waits for (`placet.unstarted`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import (
    PASSING_ERRORS,
    HITLPending,
    OutcomeUnknown,
    PlacetError,
    Refused,
    ResultNotReported,
    StillHeld,
    Unavailable,
    Unreachable,
)
from placet.gate import MOST_ERROR_CHARS, read_call
from placet.gated import current_run
from placet.models import HumanRequest, ToolCall
from placet.recording import recordable_failure
from placet.replies import checked_reply
from placet.transport.port import Request
from placet.turn import AgentFunction, AsyncTurn
from placet.turn_errors import AgentCancelled, AgentExited, WaitsElsewhere, deciding, shown, waits_for
from placet.turn_reports import GIVE_BACK_S, TurnReports
from placet.unstarted import LateVerdict, Unstarted, until_ended

_log = logging.getLogger(__name__)
LOOK_AGAIN_S = 2.0
# How long the verdict of a call is waited for that is recorded, or cannot be found.
VERDICT_S = 60.0
# The same for a call that the function waits for no longer, before a turn is given back for something else.
UNSEEN_S = 5.0
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
# Of how many turns a worker remembers that it gave them back.
REMEMBERED_MAX = 1_000
_UNUSED = (
    "a turn of %s ends while its question %s waits, and nothing will use the answer: does an `except Exception` of "
    "the agent catch HITLPending?"
)

_STOPPED = "its worker was stopped before it began"
_WITHOUT_IT = "its turn ended without it"
_HERE = "a turn of %s waits for a person at this worker: of its calls, no other worker can run one"


class _TextWithheld(Exception):
    """Stands in a log for an exception whose text can contain sensitive values."""


class Pauses:
    """How long a turn is kept before it is given back to be tried again: twice as long each time."""

    def __init__(self) -> None:
        self._next_s: dict[tuple[str, str], float] = {}

    def take(self, claimed: ClaimedTurn) -> float:
        """The pause now, in seconds."""
        key = claimed.conversation_id, claimed.turn_id
        pause_s = self._next_s.pop(key, FIRST_PAUSE_S)
        if len(self._next_s) >= REMEMBERED_MAX:
            del self._next_s[next(iter(self._next_s))]
        self._next_s[key] = min(pause_s * 2, MOST_PAUSE_S)
        return pause_s

    def forget(self, claimed: ClaimedTurn) -> None:
        """Begin anew: the turn has got on."""
        self._next_s.pop((claimed.conversation_id, claimed.turn_id), None)


class Attempt:
    """One attempt at one turn; `work` is called once."""

    def __init__(
        self,
        channel: Channel,
        function: AgentFunction,
        claimed: ClaimedTurn,
        wait_s: float | None,
        pauses: Pauses,
    ) -> None:
        self._channel = channel
        self._function = function
        self._claimed = claimed
        self._turn = AsyncTurn(channel, claimed.agent, claimed, wait_s)
        self._pauses = pauses
        self._unstarted = Unstarted(channel, claimed)
        self._running: asyncio.Task[str | None] | None = None
        self._reports = TurnReports(channel, claimed)
        self._task: asyncio.Task[Any] | None = None

    async def work(self) -> None:
        """Run the function and report its end; if this is cancelled, the turn is given back."""
        self._task = asyncio.current_task()
        renewing = asyncio.create_task(self._renew())
        try:
            while await self._to_its_end(renewing):
                self._turn = await self._turn.begun_again()
        except asyncio.CancelledError:
            # A lost lease cancels the function, too: then nothing is given back.
            if not self._reports.is_lost and not self._reports.is_ended:
                await self._give_back()
            if self._is_stopped:
                raise
        finally:
            if self._running is not None:
                self._running.cancel()
            renewing.cancel()
            self._unstarted.keep_no_longer()
            if self._reports.is_lost or self._reports.is_ended:
                self._channel.taken.forget(self._claimed.conversation_id)

    @property
    def _is_stopped(self) -> bool:
        # Of this task: a task group of the function's cancels the task of the function itself.
        return self._task is not None and self._task.cancelling() > 0

    async def _to_its_end(self, renewing: asyncio.Task[None]) -> bool:
        """Run the function and report its end; returns True if it is to run again under this claim."""
        if self._reports.is_lost:
            return False
        self._running = asyncio.create_task(self._run())
        try:
            said = await self._running
        except Exception as raised:
            # Reported below: what goes wrong there must not have this error, with its text, as its context.
            error: Exception = raised
        else:
            if waiting := self._turn.run.unanswered:
                _log.warning(_UNUSED, self._claimed.agent, ", ".join(waiting))
            await self._complete(said or "")
            return False
        if self._reports.is_lost or self._is_stopped:
            # What its clean-up raised, or what a task group made of the cancellation.
            _log.warning("the agent %s was stopped and raised %s", self._claimed.agent, type(error).__name__)
            raise asyncio.CancelledError
        return await self._left(error, renewing)

    async def _run(self) -> str | None:
        token = current_run.set(self._turn.run)
        try:
            said = await self._function(self._turn)
        except SystemExit as left:
            raise AgentExited(f"SystemExit: {left.code}") from left
        except asyncio.CancelledError as left:
            if self._reports.is_lost or self._is_stopped:
                raise
            raise AgentCancelled(
                "CancelledError: the function awaited a task that it, or a library, had cancelled"
            ) from left
        finally:
            current_run.reset(token)
        return checked_reply(said, self._function)

    async def _renew(self) -> None:
        """Renew the lease; if that is refused, end the function: another attempt may work on the turn."""
        lease = self._turn.lease
        while True:
            if pause_s := lease.due_in():
                # A reply renews it, too: then it is due later.
                await asyncio.sleep(pause_s)
                continue
            asked_at = lease.asked()
            try:
                answer = await self._channel.ask(asks.renew_turn(self._claimed))
                renewed = lease.answered(answer, asked_at)
            except Exception as error:
                if isinstance(error, Refused) and not isinstance(error, PASSING_ERRORS):
                    if self._reports.is_ended:
                        return
                    _log.warning("a turn was lost: %s", error)
                    self._reports.is_lost = True
                    if self._running is not None:
                        self._running.cancel()
                    return
                # Also an error of the client's token source: without renewals the turn would be lost for sure.
                _log.warning("the lease of a turn was not renewed, and it is tried again: %s", shown(error))
                renewed = False
            if not renewed:
                await asyncio.sleep(lease.again_in)

    async def _complete(self, reply: str) -> None:
        try:
            await self._end(asks.end_turn(self._claimed, "completed", reply=reply))
            return
        except Refused as refused:
            if refused.acts != "stop":
                raise
            # Such as a reply that is too long: it would be refused after every further run of the function, too.
            error = refused
        await self._fail(error)

    async def _left(self, error: Exception, renewing: asyncio.Task[None]) -> bool:
        """Report what an error of the function means for its turn; returns True if the function is to run again."""
        why = deciding(error)
        of = waits_for(why)
        if of is not None and of != self._claimed.conversation_id:
            assert isinstance(why, PlacetError)
            await self._fail(WaitsElsewhere(why, of))
        elif isinstance(why, HITLPending):
            return await self._wait_for(why.request.hold_id, why.request, renewing)
        elif isinstance(why, StillHeld) and why.call.pending:
            return await self._wait_for_decision(why, renewing)
        elif isinstance(why, OutcomeUnknown):
            return await self._wait_until_settled(why.call, renewing)
        elif isinstance(why, ResultNotReported):
            # The call as it was before it ran; it may have been reported after all.
            return await self._wait_until_settled(await self._read(why.call), renewing)
        elif isinstance(why, PlacetError) and why.acts == "retry":
            return await self._again_later(why, renewing, isinstance(why, Unavailable | Unreachable))
        else:
            await self._fail(error)
        return False

    async def _wait_for(
        self, hold_id: str | None, on: HumanRequest | ToolCall, renewing: asyncio.Task[None]
    ) -> bool:
        """Give the turn back until a person has decided a hold, that of `on`; None: until now.

        Returns True if the function is to run again here: of its calls, only this process can run one.
        """
        if await self._unstarted.holds(renewing, UNSEEN_S, LOOK_AGAIN_S):
            # Reported as failed, the call would fail the agent, which would have run it after the person's answer.
            _log.warning(_HERE, self._claimed.agent)
            self._pauses.forget(self._claimed)
            await until_ended(self._channel, on, renewing, LOOK_AGAIN_S)
            return not self._reports.is_lost
        try:
            await self._reports.tell(asks.yield_turn(self._claimed, hold_id))
            self._pauses.forget(self._claimed)
            return False
        except Refused as refused:
            if refused.acts != "stop":
                raise
            # Left as it is, the turn would be tried again as often as leases may end.
            error = refused
        await self._fail(error)
        return False

    async def _wait_for_decision(self, why: StillHeld, renewing: asyncio.Task[None]) -> bool:
        """Give the turn back until a person has decided a call; returns True if the function is to run again.

        Without a verdict, as while the decider is away, it has no hold. Its verdict is waited for here: what releases
        the call may consume it for the attempt that this process keeps, which no other worker can run.
        """
        late = LateVerdict(self._channel, why.call, VERDICT_S)
        while late.is_awaited and not self._reports.is_lost:
            await asyncio.wait({renewing}, timeout=LOOK_AGAIN_S)
            await late.look()
        if self._reports.is_lost:
            return False
        if late.is_put_off:
            return await self._again_later(why, renewing, False)
        if late.call.pending and late.call.hold_id:
            return await self._wait_for(late.call.hold_id, late.call, renewing)
        self._unstarted.keep(late.call, late.none_at)
        self._pauses.forget(self._claimed)
        return True

    async def _wait_until_settled(self, call: ToolCall, renewing: asyncio.Task[None]) -> bool:
        """Give the turn back until a person has settled a call whose result was not reported.

        The hold for that opens when the lease of the call's attempt ends. Returns True as `_wait_for` does.
        """
        while call.status == "consumed" and not self._reports.is_lost:
            await asyncio.wait({renewing}, timeout=LOOK_AGAIN_S)
            call = await self._read(call)
        if self._reports.is_lost:
            return False
        hold_id = call.hold_id if call.status == "outcome_unknown" else None
        return await self._wait_for(hold_id, call, renewing)

    async def _again_later(
        self, error: PlacetError, renewing: asyncio.Task[None], is_unanswered: bool
    ) -> bool:
        """Give the turn back after a pause; returns True if the function is to run again here.

        What was not answered may have consumed a call that only this process can run.
        """
        pause_s = self._pauses.take(self._claimed)
        is_kept = is_unanswered and self._unstarted.may_be
        said = "is tried again" if self._unstarted.may_be else "is given back"
        _log.warning("a turn of %s %s in %g s: %s", self._claimed.agent, said, pause_s, error)
        await asyncio.wait({renewing}, timeout=pause_s)
        # What is not there by now was refused.
        is_kept = is_kept or await self._unstarted.holds(renewing, 0.0, LOOK_AGAIN_S)
        if not is_kept and not renewing.done():
            await self._reports.tell(asks.yield_turn(self._claimed, None))
        return is_kept

    async def _fail(self, error: Exception) -> None:
        is_exposed = await self._channel.is_exposed()
        told = recordable_failure(error, is_exposed)
        is_ours = True
        try:
            is_ours = await self._end(
                asks.end_turn(self._claimed, "failed", error=told.value[:MOST_ERROR_CHARS])
            )
        finally:
            # A refusal of what is not this worker's any more is no fault of the agent.
            if is_ours or not isinstance(error, Refused):
                logged = (
                    _TextWithheld(told.value).with_traceback(error.__traceback__) if is_exposed else error
                )
                _log.error("the agent %s failed", self._claimed.agent, exc_info=logged)

    async def _end(self, request: Request) -> bool:
        """Report the end of the turn; returns False if it was not this worker's any more."""
        try:
            self._reports.is_ended = await self._reports.tell(request)
        finally:
            if self._reports.is_ended:
                await self._unstarted.end(_WITHOUT_IT, GIVE_BACK_S)
        self._channel.taken.forget(self._claimed.conversation_id)
        self._pauses.forget(self._claimed)
        return self._reports.is_ended

    async def _give_back(self) -> None:
        """Give the turn back without waiting long: a process that is told to stop must not be held up."""
        # Both at once: what does not answer for one, or refuses it, must not keep the other.
        await asyncio.gather(self._reports.give_back_soon(), self._unstarted.withdraw(_STOPPED, GIVE_BACK_S))

    async def _read(self, call: ToolCall) -> ToolCall:
        return await self._channel.patiently(
            lambda: read_call(self._channel, call.execution_id, call.call_id)
        )
