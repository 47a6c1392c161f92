"""Retries: growing, randomised pauses, and one time budget for each request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator

from placet.errors import NoAnswer, Unreachable
from placet.transport.port import ConnectionLost, Patience, Reply, Request

MOST_RETRY_AFTER_S = 60.0
SendOnce = Callable[[Request, float], Awaitable[Reply]]


def delays(patience: Patience) -> Iterator[float]:
    """Endless pauses in seconds: doubling up to a ceiling, at random between half and whole."""
    whole = patience.first_delay_s
    while True:
        yield whole * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients out; nothing secret
        whole = min(whole * 2, patience.most_delay_s)


class Outage:
    """For how long a stream could not be opened, and whether that is tolerated; made where the stream begins."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._clock = asyncio.get_running_loop().time
        self._heard_at, self._has_heard = self._clock(), False
        self._pauses = delays(patience)
        self._at_least_s = 0.0

    def heard(self) -> None:
        """Note that something came."""
        self._heard_at, self._has_heard, self._pauses = self._clock(), True, delays(self._patience)

    def tolerate(self, lost: ConnectionLost, *, is_served: bool = False) -> None:
        """Go on after a lost connection: at first for `Patience.request_s`, later for `Patience.outage_s`.

        Args:
            lost: why it ended.
            is_served: True if the gateway answered, with nothing for this reader: it is `outage_s` from the first.

        Raises:
            Unreachable: nothing has come for longer.
            QuotaExceeded: the same, as the caller's share is used up.
        """
        self._at_least_s = min(lost.retry_after_s or 0.0, MOST_RETRY_AFTER_S)
        if lost.opened:
            self._heard_at, self._has_heard = self._clock(), True
        is_known = self._has_heard or is_served
        patience_s = self._patience.outage_s if is_known else self._patience.request_s
        if self._clock() - self._heard_at >= patience_s:
            raise lost.quota or Unreachable(str(lost)) from lost

    async def pause(self) -> None:
        """Wait before the next connection, longer each time until something comes."""
        await asyncio.sleep(max(next(self._pauses), self._at_least_s))
        self._at_least_s = 0.0


async def send_retrying(send_once: SendOnce, request: Request, patience: Patience) -> Reply:
    """Send a request until it is answered, each time under the same idempotency key.

    Args:
        send_once: one try with a timeout in seconds; raises `ConnectionLost` if there is no answer.
        request: the request to send.
        patience: the budget, in addition to the request's own waiting time.

    Returns:
        The first answer that is not temporary (`Reply.comes_back`), or the last temporary one.

    Raises:
        NoAnswer: a request for a change was sent, and no answer came within the budget.
        Unreachable: the same for a request that only reads, or was not sent.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    budget_s = patience.request_s + request.waits_s
    # A gateway that accepted a request may queue it, which is worth a longer wait than an unreachable gateway.
    sent_budget_s = max(budget_s, patience.answer_s + request.waits_s)
    pauses = delays(patience)
    last: Reply | None = None
    sent = False
    while True:
        reply, lost = await _try(send_once, request, max(began + sent_budget_s - clock(), 0.001))
        if reply is not None and not reply.comes_back:
            return reply
        last = reply or last
        # A request that was sent may have been carried out, so the answer of another try is worth that time too.
        sent = sent or (request.writes and lost is not None and lost.sent)
        pause_s = next(pauses)
        if reply is not None and reply.retry_after_s is not None:
            pause_s = max(pause_s, min(reply.retry_after_s, MOST_RETRY_AFTER_S))
        most_s = sent_budget_s if sent else budget_s
        if clock() + pause_s >= began + most_s:
            if last is not None:
                return last
            after_s = sent_budget_s if clock() >= began + sent_budget_s else most_s
            path = request.path if sent else None
            raise _given_up(lost, path, after_s if sent else clock() - began) from lost
        await asyncio.sleep(pause_s)


def _given_up(lost: ConnectionLost | None, may_have_been_done: str | None, after_s: float) -> Unreachable:
    if may_have_been_done is None:
        return Unreachable(f"{lost}; tried for {after_s:.1f} s")
    return NoAnswer(f"{lost}: no answer within {after_s:g} s; it may have been done", may_have_been_done)


async def _try(
    send_once: SendOnce, request: Request, timeout_s: float
) -> tuple[Reply | None, ConnectionLost | None]:
    try:
        return await send_once(request, timeout_s), None
    except ConnectionLost as lost:
        return None, lost
