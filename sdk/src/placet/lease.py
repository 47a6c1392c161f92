"""Lease renewal: while a function runs, its attempt renews its lease, so that it does not count as lost.

An attempt is believed for as long as its tool's lease (60 s by default). Once half of it has passed, it is renewed.
A function that holds up its event loop keeps its own signs of life from being sent.

The lease runs from the decision on. An answer to the consumption that came late is a leave to run only once a sign of
life was taken after it: meanwhile the attempt may have been taken for lost, and the call given to another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from placet.errors import NotReleased, PlacetError, Refused

_log = logging.getLogger(__name__)
# A little after the half, so that the log's clock and this one need not agree to the millisecond.
RENEW_AFTER, AGAIN_AFTER = 0.55, 0.1
LATE_AFTER, LATE_MOST = 0.5, 3

Renew = Callable[[], Awaitable[Any]]


class Stoppable(Protocol):
    """Work in the background."""

    def cancel(self) -> object:
        """End it."""


def lease_of(answer: Any) -> float | None:
    """The length of the lease, from the answer to the consumption; None if the gateway gives none."""
    said = answer.get("lease_seconds") if isinstance(answer, Mapping) else None
    return float(said) if isinstance(said, int | float) and said > 0 else None


async def consumed(consume: Renew, renew: Renew, attempt_id: str, asked_at: float | None = None) -> Any:
    """The answer to a consumption, once it is the permission to run now.

    Args:
        consume: asks for it.
        renew: says that the attempt still has the call.
        attempt_id: the attempt.
        asked_at: when the consumption was asked for first, by the loop's clock; now by default.

    Raises:
        NotReleased: the answer is not about this attempt's run, or too late for it.
        PlacetError: the gateway refuses it, or nobody answers.
    """
    clock = asyncio.get_running_loop().time
    asked_at = clock() if asked_at is None else asked_at
    answer = await consume()
    check_has(answer, attempt_id)
    lease_s = lease_of(answer)
    for _ in range(LATE_MOST):
        if lease_s is None or clock() - asked_at < lease_s * LATE_AFTER:
            return answer
        asked_at = clock()
        check_has(await renew(), attempt_id)
    raise _not_released("answers take longer than half of the call's lease: nothing runs")


def check_has(call: Any, attempt_id: str) -> None:
    """Refuse where a call, as it was answered with 200, is not run by this attempt; earlier gateways answer so.

    Raises:
        NotReleased: it is not.
    """
    told = call if isinstance(call, Mapping) else {}
    if told.get("status") != "consumed" or told.get("attempt_id") != attempt_id:
        raise _not_released("the gateway's answer does not confirm a run of this attempt: nothing runs")


def _not_released(detail: str) -> NotReleased:
    return NotReleased("not_released", 409, detail)


async def beating(
    lease_s: float,
    renew: Renew,
    asked_at: float | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Renew a lease whenever half of it has passed, until it is cancelled or there is nothing more to renew.

    Args:
        lease_s: its length.
        renew: says that the attempt still runs; its answer is the call.
        asked_at: since when, by the loop's clock, the lease may run; now by default.
        is_over: whether whoever should have cancelled it is gone; an interrupt may keep them from it.
    """
    age_s = 0.0 if asked_at is None else asyncio.get_running_loop().time() - asked_at
    until, pause_s = None, max(lease_s * RENEW_AFTER - age_s, 0.0)
    while True:
        await asyncio.sleep(pause_s)
        if is_over():
            return
        try:
            answer = await renew()
        except PlacetError as error:
            if isinstance(error, Refused) and error.acts != "retry":
                _log.warning("the lease of an attempt can no longer be renewed: %s", error)
                return
            _log.info("a lease was not renewed, trying again: %s", error)
            pause_s = lease_s * AGAIN_AFTER
            continue
        found = answer.get("lease_until") if isinstance(answer, Mapping) else None
        pause_s = lease_s * (RENEW_AFTER if found != until else AGAIN_AFTER)
        until = found


@contextmanager
def alive(start: Callable[[], Stoppable] | None) -> Iterator[None]:
    """Renew a lease while a block runs; `start` begins the renewals, None means none."""
    signs = None if start is None else start()
    try:
        yield
    finally:
        if signs is not None:
            signs.cancel()
