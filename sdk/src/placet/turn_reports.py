"""What a worker reports of the turn that it works on, for as long as it holds the lease."""

from __future__ import annotations

import asyncio
import logging

from placet import asks
from placet.channel import Channel
from placet.chat_models import ClaimedTurn
from placet.errors import PASSING_ERRORS, ExecutionClosed, Refused
from placet.transport.port import Request
from placet.turn_errors import shown

_log = logging.getLogger(__name__)
GIVE_BACK_S = 5.0
TRY_AGAIN_S = 2.0
# The turn is another attempt's, or it is over.
_TAKEN = frozenset({"already_consumed", "not_released", "execution_closed", "not_open"})
_AGAIN = "another worker has it when its lease ends"


class TurnReports:
    """Those about one turn: `is_lost` if it is another attempt's by now, `is_ended` once its end is reported."""

    def __init__(self, channel: Channel, claimed: ClaimedTurn) -> None:
        self._channel = channel
        self._claimed = claimed
        self.is_lost = self.is_ended = False

    async def tell(self, request: Request) -> bool:
        """Report what became of the turn, also if this worker is being stopped.

        It is tried for as long as the lease is held: what is not reported is done again.

        Returns:
            False if another attempt has taken the turn on, or it is over: it is left alone.

        Raises:
            Refused: the report itself is refused.
        """
        telling = asyncio.create_task(self._ask(request))
        try:
            return await asyncio.shield(telling)
        except asyncio.CancelledError:
            # The turn has its end: given back, it would be worked on again.
            self.is_ended = True
            await asyncio.wait({telling}, timeout=GIVE_BACK_S)
            if not telling.done():
                _log.warning("the end of a turn was not reported within %g s: %s", GIVE_BACK_S, _AGAIN)
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            raise

    async def give_back_soon(self) -> None:
        """Give the turn back without waiting long; errors are logged."""
        try:
            async with asyncio.timeout(GIVE_BACK_S):
                await self._ask(asks.yield_turn(self._claimed, None))
        except TimeoutError:
            _log.warning("a turn was not given back (no answer within %g s): %s", GIVE_BACK_S, _AGAIN)
        except Exception as error:
            # Also of the client's token source: what stopped this worker is what its caller must see.
            _log.warning("a turn was not given back (%s): %s", shown(error), _AGAIN)

    async def _ask(self, request: Request) -> bool:
        try:
            while True:
                if await self._is_told(request):
                    break
                await asyncio.sleep(TRY_AGAIN_S)
        except ExecutionClosed:
            _log.info("the conversation %s has ended", self._claimed.conversation_id)
            return False
        except Refused as error:
            if error.code not in _TAKEN:
                raise
            _log.warning("a turn was taken from this worker: %s", error)
            return False
        return not self.is_lost

    async def _is_told(self, request: Request) -> bool:
        """Try once; returns True if it need not be tried again."""
        if not self.is_lost:
            try:
                await self._channel.ask(request)
            except PASSING_ERRORS as error:
                _log.warning("the end of a turn was not reported, and it is tried again: %s", error)
                return False
        return True
