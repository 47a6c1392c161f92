"""Workers: they take on the turns of agents, one attempt at a time, and run the agents' functions.

Each turn is claimed under a fresh attempt id, which gives a lease (`placet.attempt` has what follows).
If the process is lost, the lease ends, and another worker takes the turn on. If it is stopped, it gives its turns
back at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import closing

from placet import asks, tracing
from placet.attempt import Attempt, Pauses
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import PASSING_ERRORS, AlreadyConsumed, NotAuthorised, NotReleased, PlacetError
from placet.ids import attempt_id as new_attempt_id
from placet.loop_watch import LoopWatch
from placet.parsing import parse
from placet.places import Claim, Places
from placet.transport.port import Patience
from placet.transport.retry import delays
from placet.turn import AgentFunction
from placet.turn_errors import shown

_log = logging.getLogger(__name__)
# A gateway that is there has answered, or begun to wait, in a fraction of this.
SILENT_S = 5.0
# A timer that is later than this was held up, by a loop that was blocked.
HELD_UP_S = 1.0


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
        self._places = Places(concurrency, len(agents))
        self._wait_s = wait_s
        self._patience = patience
        self._pauses = Pauses()
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
        is_first, has_answered = True, False
        while True:
            async with self._places.claim() as claim:
                turn, error = await self._asked(agent, claim, has_answered, is_first)
            has_answered = error is None
            if error is not None:
                _log.warning("no turn of %s could be claimed, and it is tried again: %s", agent, shown(error))
                await asyncio.sleep(next(pauses))
                continue
            pauses, is_first = delays(self._patience), False
            if turn is not None:
                task = asyncio.create_task(self._work(agent, turn))
                self._working.add(task)
                task.add_done_callback(self._done)

    async def _asked(
        self, agent: str, claim: Claim, may_wait: bool, is_first: bool
    ) -> tuple[ClaimedTurn | None, Exception | None]:
        """Request a turn; the turn, None if there is none, or the error that will pass."""
        # Without waiting at first and after each outage, so that a gateway that is away is told of soon.
        wait_s = claim.wait_s if may_wait else 0.0
        with closing(_Silence(agent, SILENT_S + wait_s)):
            try:
                turn = await self._next(agent, wait_s)
            except PASSING_ERRORS as error:
                return None, error
            except PlacetError:
                raise
            except Exception as error:
                # Of the client's token source, for example: at first it is a mistake, later an outage.
                if is_first:
                    raise
                return None, error
        if turn is not None:
            claim.keep()
        return turn, None

    def _done(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._places.free()
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
            await Attempt(self._channel, self._agents[agent], claimed, self._wait_s, self._pauses).work()


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
