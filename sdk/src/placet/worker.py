"""Workers: they take on the turns of agents, one attempt at a time, and run the agents' functions.

For each turn, in this order:
1. it is claimed under a fresh attempt id, which gives a lease; the lease is renewed while the function runs;
2. the agent's function runs;
3. what it returned is the last reply, and the turn is completed; what it raised fails the turn, unless a person has
   to answer, decide or settle a call first (`HITLPending`, `StillHeld`, `OutcomeUnknown`): then it is given back
   until then.
If the process is lost, the lease ends, and another worker takes the turn on. If it is stopped, it gives its turns
back at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import closing

from placet import asks, tracing
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import (
    AlreadyConsumed,
    ExecutionClosed,
    HITLPending,
    NotAuthorised,
    NotReleased,
    OutcomeUnknown,
    PlacetError,
    QuotaExceeded,
    Refused,
    StillHeld,
    Unavailable,
    Unreachable,
)
from placet.gate import MOST_ERROR_CHARS
from placet.gated import current_run
from placet.ids import attempt_id as new_attempt_id
from placet.loop_watch import LoopWatch
from placet.models import ToolCall
from placet.parsing import parse
from placet.recording import recordable_failure
from placet.replies import checked_reply
from placet.transport.port import Patience, Request
from placet.transport.retry import delays
from placet.turn import AgentFunction, AsyncTurn

_log = logging.getLogger(__name__)
CLAIM_WAIT_S = 30.0
# A gateway that is there has answered, or begun to wait, in a fraction of this.
SILENT_S = 5.0
GIVE_BACK_S = 5.0
LOOK_AGAIN_S = 2.0
# Errors after which the same turn can be tried again: nobody has decided anything.
_PASSING = (Unreachable, Unavailable, QuotaExceeded)
# The turn is another attempt's, or it is over.
_TAKEN = frozenset({"already_consumed", "not_released", "execution_closed", "not_open"})
_UNUSED = (
    "a turn of %s ends while its question %s waits, and nothing will use the answer: does an `except Exception` of "
    "the agent catch HITLPending?"
)
# A timer that is later than this was held up, by a loop that was blocked.
HELD_UP_S = 1.0


class AgentExited(PlacetError):
    """An agent's function called `sys.exit`: its turn has failed, and the worker goes on."""


class Worker:
    """Takes on the turns of some agents, at most `concurrency` at once."""

    def __init__(
        self,
        channel: Channel,
        agents: Mapping[str, AgentFunction],
        *,
        concurrency: int,
        wait_s: float | None,
        patience: Patience,
    ) -> None:
        self._channel = channel
        self._agents = agents
        self._free = asyncio.Semaphore(concurrency)
        self._wait_s = wait_s
        self._patience = patience
        self._working: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Work until cancelled; then every turn under way is given back."""
        claiming = [asyncio.create_task(self._claim(name)) for name in self._agents]
        watch = LoopWatch()
        try:
            await asyncio.gather(*claiming)
        finally:
            watch.close()
            for task in (*claiming, *self._working):
                task.cancel()
            await asyncio.gather(*claiming, *self._working, return_exceptions=True)

    async def _claim(self, agent: str) -> None:
        pauses = delays(self._patience)
        # Without waiting at first and after each outage, so that a gateway that is away is told of soon.
        wait_s = 0.0
        while True:
            await self._free.acquire()
            try:
                with closing(_Silence(agent, SILENT_S + wait_s)):
                    turn = await self._next(agent, wait_s)
            except _PASSING as error:
                self._free.release()
                _log.warning("no turn of %s could be claimed, and it is tried again: %s", agent, error)
                await asyncio.sleep(next(pauses))
                wait_s = 0.0
                continue
            except BaseException:
                self._free.release()
                raise
            pauses, wait_s = delays(self._patience), CLAIM_WAIT_S
            if turn is None:
                self._free.release()
                continue
            task = asyncio.create_task(self._work(agent, turn))
            self._working.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._free.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a turn was left as it is: %s", error, exc_info=error)

    async def _next(self, agent: str, wait_s: float) -> ClaimedTurn | None:
        try:
            answer = await self._channel.ask(asks.claim_turn(agent, new_attempt_id(), wait_s))
        except (AlreadyConsumed, NotReleased) as error:
            # The answer to its first request was lost, and its lease has ended since: the turn needs a new attempt.
            _log.warning("a turn of %s was claimed too late: %s", agent, error)
            return None
        except NotAuthorised as error:
            raise NotAuthorised(error.code, error.status, f"{agent}: {error.detail}", error.fields) from error
        found = answer.get("turn")
        if found is None:
            return None
        more = {"cursor": answer.get("cursor", ""), "lease_seconds": answer.get("lease_seconds")}
        return parse(ClaimedTurn, {**found, **more})

    async def _work(self, agent: str, claimed: ClaimedTurn) -> None:
        # Without a span of its own: it can wait for a person for hours.
        with tracing.continuing(claimed.traceparent or ""):
            await self._attempt(agent, claimed)

    async def _attempt(self, agent: str, claimed: ClaimedTurn) -> None:
        turn = AsyncTurn(self._channel, agent, claimed, self._wait_s)
        running = asyncio.create_task(self._run(agent, turn))
        renewing = asyncio.create_task(self._renew(turn, running))
        try:
            said = await running
        except asyncio.CancelledError:
            if not renewing.done():
                # This worker is being stopped. A lost lease cancels the function, too: then nothing is given back.
                await self._give_back(claimed)
                raise
            self._channel.taken.forget(claimed.conversation_id)
        except Exception as error:
            await self._failed(claimed, error)
        else:
            if waiting := turn.run.unanswered:
                _log.warning(_UNUSED, agent, ", ".join(waiting))
            await self._complete(claimed, said or "")
        finally:
            running.cancel()
            renewing.cancel()

    async def _run(self, agent: str, turn: AsyncTurn) -> str | None:
        token = current_run.set(turn.run)
        try:
            said = await self._agents[agent](turn)
        except SystemExit as left:
            raise AgentExited(f"SystemExit: {left.code}") from left
        finally:
            current_run.reset(token)
        return checked_reply(said, self._agents[agent])

    async def _renew(self, turn: AsyncTurn, running: asyncio.Task[str | None]) -> None:
        """Renew the lease; if that is refused, end the function: another attempt may work on the turn."""
        lease = turn.lease
        while True:
            if pause_s := lease.due_in():
                # A reply renews it, too: then it is due later.
                await asyncio.sleep(pause_s)
                continue
            asked_at = lease.asked()
            try:
                renewed = lease.answered(await self._channel.ask(asks.renew_turn(turn.claimed)), asked_at)
            except _PASSING as error:
                _log.warning("the lease of a turn was not renewed, and it is tried again: %s", error)
                renewed = False
            except Refused as error:
                _log.warning("a turn was lost: %s", error)
                running.cancel()
                return
            if not renewed:
                await asyncio.sleep(lease.again_in)

    async def _complete(self, claimed: ClaimedTurn, reply: str) -> None:
        try:
            await self._ended(asks.end_turn(claimed, "completed", reply=reply), claimed)
        except Refused as error:
            # Such as a reply that is too long: it would be refused after every further run of the function, too.
            await self._failed(claimed, error)

    async def _failed(self, claimed: ClaimedTurn, error: Exception) -> None:
        if isinstance(error, HITLPending):
            await self._tell(asks.yield_turn(claimed, error.request.hold_id))
        elif isinstance(error, StillHeld):
            hold_id = error.call.hold_id if error.call.pending else None
            await self._tell(asks.yield_turn(claimed, hold_id))
        elif isinstance(error, OutcomeUnknown):
            await self._tell(asks.yield_turn(claimed, await self._hold_on(error.call)))
        elif isinstance(error, ExecutionClosed):
            self._channel.taken.forget(claimed.conversation_id)
            _log.info("the conversation %s has ended", claimed.conversation_id)
        elif isinstance(error, PlacetError) and error.acts == "retry":
            _log.warning("a turn of %s is given back: %s", claimed.agent, error)
            await self._tell(asks.yield_turn(claimed, None))
        else:
            await self._tell_failed(claimed, error)

    async def _tell_failed(self, claimed: ClaimedTurn, error: Exception) -> None:
        told = recordable_failure(error, await self._channel.is_exposed())
        ended = asks.end_turn(claimed, "failed", error=told.value[:MOST_ERROR_CHARS])
        is_ours = True
        try:
            is_ours = await self._ended(ended, claimed)
        finally:
            # A refusal of what is not this worker's any more is no fault of the agent.
            if is_ours or not isinstance(error, Refused):
                _log.error("the agent %s failed", claimed.agent, exc_info=error)

    async def _ended(self, request: Request, claimed: ClaimedTurn) -> bool:
        """Report the end of a turn; returns False if the turn was not this worker's any more."""
        is_ours = await self._tell(request)
        self._channel.taken.forget(claimed.conversation_id)
        return is_ours

    async def _give_back(self, claimed: ClaimedTurn) -> None:
        """Give a turn back without waiting long: a process that is told to stop must not be held up."""
        try:
            async with asyncio.timeout(GIVE_BACK_S):
                await self._tell(asks.yield_turn(claimed, None))
        except (PlacetError, TimeoutError) as error:
            why = str(error) or f"no answer within {GIVE_BACK_S:g} s"
            _log.warning("a turn was not given back, another worker has it when its lease ends: %s", why)

    async def _hold_on(self, call: ToolCall) -> str | None:
        """The hold by which a person settles a call that another worker was lost with; None if none is needed.

        The hold opens when the lease of the lost worker's attempt ends.
        """
        asked = asks.get_call(call.execution_id, call.call_id, None, None)
        while call.status == "consumed":
            await asyncio.sleep(LOOK_AGAIN_S)
            call = await self._channel.patiently(lambda: self._channel.one(ToolCall, asked))
        return call.hold_id if call.status == "outcome_unknown" else None

    async def _tell(self, request: Request) -> bool:
        """Report what became of a turn.

        Returns:
            False if another attempt has taken it on, or it is over: it is left alone.
        """
        try:
            await self._channel.ask(request)
        except Refused as error:
            if error.code not in _TAKEN:
                raise
            _log.warning("a turn was taken from this worker: %s", error)
            return False
        return True


class _Silence:
    """Tells, once, that a claim has no answer for longer than it should take, until it is closed."""

    def __init__(self, agent: str, after_s: float) -> None:
        self._agent = agent
        self._after_s = after_s
        self._timer = self._later(after_s)

    def close(self) -> None:
        """Tell nothing more."""
        self._timer.cancel()

    def _later(self, in_s: float) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(in_s, self._tell, loop.time() + in_s)

    def _tell(self, due: float) -> None:
        if asyncio.get_running_loop().time() > due + HELD_UP_S:
            # The answer may have been here for long: it is read before this is called again.
            self._timer = self._later(SILENT_S)
            return
        said = "the gateway has not answered for %g s, and is tried again: messages to %s wait"
        _log.warning(said, self._after_s, self._agent)
