"""Trying again: pauses that grow and spread, and one budget of time for a request."""

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


async def send_retrying(send_once: SendOnce, request: Request, patience: Patience) -> Reply:
    """Send a request until it is answered, each time under the same idempotency key.

    Args:
        send_once: one try of at most so many seconds; raises `ConnectionLost` when there is no answer.
        request: what to send.
        patience: the budget, on top of what the request itself waits.

    Returns:
        The first answer that isn't a passing one (`Reply.comes_back`), or the last of those.

    Raises:
        NoAnswer: what was to be changed was sent, and no answer came within the budget.
        Unreachable: likewise of what only reads, or was not sent.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    budget_s = patience.request_s + request.waits_s
    # Who takes a request may let it wait for its turn, which is worth more time than finding out that nobody does.
    sent_budget_s = max(budget_s, patience.answer_s + request.waits_s)
    pauses = delays(patience)
    last: Reply | None = None
    sent = False
    while True:
        reply, lost = await _try(send_once, request, max(began + sent_budget_s - clock(), 0.001))
        if reply is not None and not reply.comes_back:
            return reply
        last = reply or last
        # What was sent may be done, so that the answer of another try is worth that time as well.
        sent = sent or (request.writes and lost is not None and lost.sent)
        pause_s = next(pauses)
        if reply is not None and reply.retry_after_s is not None:
            pause_s = max(pause_s, min(reply.retry_after_s, MOST_RETRY_AFTER_S))
        most_s = sent_budget_s if sent else budget_s
        if clock() + pause_s >= began + most_s:
            if last is not None:
                return last
            after_s = sent_budget_s if clock() >= began + sent_budget_s else most_s
            raise _given_up(lost, request.path if sent else None, after_s) from lost
        await asyncio.sleep(pause_s)


def _given_up(lost: ConnectionLost | None, may_have_been_done: str | None, after_s: float) -> Unreachable:
    if may_have_been_done is None:
        return Unreachable(f"{lost}; gave up after {after_s:g} s")
    return NoAnswer(f"{lost}: no answer within {after_s:g} s; it may have been done", may_have_been_done)


async def _try(
    send_once: SendOnce, request: Request, timeout_s: float
) -> tuple[Reply | None, ConnectionLost | None]:
    try:
        return await send_once(request, timeout_s), None
    except ConnectionLost as lost:
        return None, lost
