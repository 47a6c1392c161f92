"""One attempt at a turn: the agent's function runs under a renewed lease, and what it ends with is reported.

What it returned is the last reply, and the turn is completed. What it raised fails the turn, except:
* an error that a person has to end first (`HITLPending`, `StillHeld`, `OutcomeUnknown`, `ResultNotReported`): the
  turn is given back until then, and the function runs again;
* an error that passes (`acts` is "retry"): the turn is given back after a pause, which grows each time.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from placet import asks
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import (
    PASSING_ERRORS,
    ExecutionClosed,
    HITLPending,
    NotFound,
    OutcomeUnknown,
    PlacetError,
    Refused,
    ResultNotReported,
    StillHeld,
)
from placet.execution import ends
from placet.gate import MOST_ERROR_CHARS
from placet.gated import current_run
from placet.models import ToolCall
from placet.recording import recordable_failure
from placet.replies import checked_reply
from placet.transport.port import Request
from placet.turn import AgentFunction, AsyncTurn

_log = logging.getLogger(__name__)
GIVE_BACK_S = 5.0
LOOK_AGAIN_S = 2.0
# How long the verdict of a call is waited for: longer than a decider takes to start again.
VERDICT_S = 60.0
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
# Of how many turns a worker remembers that it gave them back.
REMEMBERED_MAX = 1_000
# What a person has to end before the function can go on.
_WAITING = (HITLPending, StillHeld, OutcomeUnknown, ResultNotReported)
# The turn is another attempt's, or it is over.
_TAKEN = frozenset({"already_consumed", "not_released", "execution_closed", "not_open"})
_UNUSED = (
    "a turn of %s ends while its question %s waits, and nothing will use the answer: does an `except Exception` of "
    "the agent catch HITLPending?"
)

_AGAIN = "another worker has it when its lease ends"


class AgentExited(PlacetError):
    """An agent's function called `sys.exit`: its turn has failed, and the worker goes on."""


class AgentCancelled(PlacetError):
    """An agent's function ended as cancelled, though nothing cancelled it: its turn has failed."""


class WaitsElsewhere(PlacetError):
    """An agent's function waits for a question or call of another run, for which its turn cannot be given back."""

    def __init__(self, why: PlacetError, execution_id: str) -> None:
        super().__init__(
            f"{why}; it is of the run {execution_id} and not of the conversation, so that the turn cannot wait for "
            "it: use turn.hitl and turn.run in an agent"
        )


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
        self._is_lost = self._is_ended = False
        self._task: asyncio.Task[Any] | None = None

    async def work(self) -> None:
        """Run the function and report its end; if this is cancelled, the turn is given back."""
        self._task = asyncio.current_task()
        running = asyncio.create_task(self._run())
        renewing = asyncio.create_task(self._renew(running))
        try:
            await self._to_its_end(running, renewing)
        except asyncio.CancelledError:
            # A lost lease cancels the function, too: then nothing is given back.
            if not self._is_lost and not self._is_ended:
                await self._give_back()
            if self._is_stopped:
                raise
        finally:
            running.cancel()
            renewing.cancel()
            if self._is_lost or self._is_ended:
                self._channel.taken.forget(self._claimed.conversation_id)

    @property
    def _is_stopped(self) -> bool:
        # Of this task: a task group of the function's cancels the task of the function itself.
        return self._task is not None and self._task.cancelling() > 0

    async def _to_its_end(self, running: asyncio.Task[str | None], renewing: asyncio.Task[None]) -> None:
        try:
            said = await running
        except Exception as raised:
            # Reported below: what goes wrong there must not have this error, with its text, as its context.
            error: Exception = raised
        else:
            if waiting := self._turn.run.unanswered:
                _log.warning(_UNUSED, self._claimed.agent, ", ".join(waiting))
            await self._complete(said or "")
            return
        if self._is_lost or self._is_stopped:
            # What its clean-up raised, or what a task group made of the cancellation.
            _log.warning("the agent %s was stopped and raised %s", self._claimed.agent, type(error).__name__)
            raise asyncio.CancelledError
        await self._left(error, renewing)

    async def _run(self) -> str | None:
        token = current_run.set(self._turn.run)
        try:
            said = await self._function(self._turn)
        except SystemExit as left:
            raise AgentExited(f"SystemExit: {left.code}") from left
        except asyncio.CancelledError as left:
            if self._is_lost or self._is_stopped:
                raise
            raise AgentCancelled(
                "CancelledError: the function awaited a task that it, or a library, had cancelled"
            ) from left
        finally:
            current_run.reset(token)
        return checked_reply(said, self._function)

    async def _renew(self, running: asyncio.Task[str | None]) -> None:
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
                    _log.warning("a turn was lost: %s", error)
                    self._is_lost = True
                    running.cancel()
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

    async def _left(self, error: Exception, renewing: asyncio.Task[None]) -> None:
        """Report what an error of the function means for its turn."""
        why = deciding(error)
        of = _waits_for(why)
        if of is not None and of != self._claimed.conversation_id:
            assert isinstance(why, PlacetError)
            await self._fail(WaitsElsewhere(why, of))
        elif isinstance(why, HITLPending):
            await self._wait_for(why.request.hold_id)
        elif isinstance(why, StillHeld) and why.call.pending:
            await self._wait_for_decision(why, renewing)
        elif isinstance(why, OutcomeUnknown):
            await self._wait_until_settled(why.call, renewing)
        elif isinstance(why, ResultNotReported):
            # The call as it was before it ran; it may have been reported after all.
            await self._wait_until_settled(await self._read(why.call), renewing)
        elif isinstance(why, PlacetError) and why.acts == "retry":
            await self._again_later(why, renewing)
        else:
            await self._fail(error)

    async def _wait_for(self, hold_id: str | None) -> None:
        """Give the turn back until a person has decided a hold; None: until now."""
        try:
            await self._tell(asks.yield_turn(self._claimed, hold_id))
            self._pauses.forget(self._claimed)
            return
        except Refused as refused:
            if refused.acts != "stop":
                raise
            # Left as it is, the turn would be tried again as often as leases may end.
            error = refused
        await self._fail(error)

    async def _wait_for_decision(self, why: StillHeld, renewing: asyncio.Task[None]) -> None:
        """Give the turn back until a person has decided a call.

        Without a verdict, as while the decider is away, it has no hold. Its verdict is waited for here: what releases
        the call may consume it for the attempt that this process keeps. If another worker has the turn next, a person
        settles that.
        """
        call, clock = why.call, asyncio.get_running_loop().time
        until = clock() + VERDICT_S
        while _has_no_verdict(call) and not self._is_lost and clock() < until:
            await asyncio.wait({renewing}, timeout=LOOK_AGAIN_S)
            # Not found: the proposal is on its way.
            with suppress(NotFound):
                call = await self._read(call)
        if _has_no_verdict(call) and not self._is_lost:
            await self._again_later(why, renewing)
        elif not self._is_lost:
            await self._wait_for(call.hold_id if call.pending else None)

    async def _wait_until_settled(self, call: ToolCall, renewing: asyncio.Task[None]) -> None:
        """Give the turn back until a person has settled a call whose result was not reported.

        The hold for that opens when the lease of the call's attempt ends.
        """
        while call.status == "consumed" and not self._is_lost:
            await asyncio.wait({renewing}, timeout=LOOK_AGAIN_S)
            call = await self._read(call)
        if not self._is_lost:
            await self._wait_for(call.hold_id if call.status == "outcome_unknown" else None)

    async def _again_later(self, error: PlacetError, renewing: asyncio.Task[None]) -> None:
        pause_s = self._pauses.take(self._claimed)
        _log.warning("a turn of %s is given back in %g s: %s", self._claimed.agent, pause_s, error)
        await asyncio.wait({renewing}, timeout=pause_s)
        if not renewing.done():
            await self._tell(asks.yield_turn(self._claimed, None))

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
        is_ours = await self._tell(request)
        self._channel.taken.forget(self._claimed.conversation_id)
        self._pauses.forget(self._claimed)
        return is_ours

    async def _give_back(self) -> None:
        """Give the turn back without waiting long: a process that is told to stop must not be held up."""
        try:
            async with asyncio.timeout(GIVE_BACK_S):
                await self._ask(asks.yield_turn(self._claimed, None))
        except (PlacetError, TimeoutError) as error:
            why = str(error) or f"no answer within {GIVE_BACK_S:g} s"
            _log.warning("a turn was not given back (%s): %s", why, _AGAIN)

    async def _read(self, call: ToolCall) -> ToolCall:
        asked = asks.get_call(call.execution_id, call.call_id, None, None)
        return await self._channel.patiently(lambda: self._channel.one(ToolCall, asked))

    async def _tell(self, request: Request) -> bool:
        """Report what became of the turn, also if this worker is being stopped; see `_ask`."""
        telling = asyncio.create_task(self._ask(request))
        try:
            return await asyncio.shield(telling)
        except asyncio.CancelledError:
            # The turn has its end: given back, it would be worked on again.
            self._is_ended = True
            await asyncio.wait({telling}, timeout=GIVE_BACK_S)
            if not telling.done():
                _log.warning("the end of a turn was not reported within %g s: %s", GIVE_BACK_S, _AGAIN)
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            raise

    async def _ask(self, request: Request) -> bool:
        """Report what became of the turn, for as long as the lease is held: what is not reported is done again.

        Returns:
            False if another attempt has taken it on, or it is over: it is left alone.
        """
        try:
            while True:
                if await self._is_told(request):
                    break
                await asyncio.sleep(LOOK_AGAIN_S)
        except ExecutionClosed:
            _log.info("the conversation %s has ended", self._claimed.conversation_id)
            return False
        except Refused as error:
            if error.code not in _TAKEN:
                raise
            _log.warning("a turn was taken from this worker: %s", error)
            return False
        return not self._is_lost

    async def _is_told(self, request: Request) -> bool:
        """Try once; returns True if it need not be tried again."""
        if not self._is_lost:
            try:
                await self._channel.ask(request)
            except PASSING_ERRORS as error:
                _log.warning("the end of a turn was not reported, and it is tried again: %s", error)
                return False
        return True


def deciding(error: Exception) -> Exception:
    """The error that says what becomes of a turn: of several at once (ExceptionGroup), one that leaves it open."""
    if ends(error):
        return error
    leaves = _leaves(error)
    for kind in _WAITING:
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return next((leaf for leaf in leaves if isinstance(leaf, PlacetError) and leaf.acts == "retry"), error)


def _leaves(error: BaseException) -> list[Exception]:
    within = getattr(error, "exceptions", None)
    if isinstance(within, tuple):
        return [leaf for each in within for leaf in _leaves(each)]
    return [error] if isinstance(error, Exception) else []


def _has_no_verdict(call: ToolCall) -> bool:
    return call.pending and not call.hold_id


def _waits_for(error: Exception) -> str | None:
    """The run of the question or call that an error waits for; None if it waits for none."""
    if isinstance(error, HITLPending):
        return error.request.execution_id
    return (
        error.call.execution_id if isinstance(error, StillHeld | OutcomeUnknown | ResultNotReported) else None
    )


def shown(error: Exception) -> str:
    """An error in a line of the log: those of others are named by their type, too."""
    return str(error) if isinstance(error, PlacetError) else repr(error)
