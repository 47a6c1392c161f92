"""Lease renewal: while a function runs, its attempt renews its lease, so that it is not treated as lost.

An attempt counts as running for as long as its tool's lease (60 s by default), which is renewed after half of it.
A function that blocks its event loop prevents its own renewals.

The lease starts with the decision. A late answer to the consumption permits the run only after a renewal was accepted
since: meanwhile the attempt may have been treated as lost, and the call given to another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from placet.errors import NotReleased, PlacetError, Refused

_log = logging.getLogger(__name__)
# A little more than half, so that the log's clock and this one need not agree to the millisecond.
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
    """The answer to a consumption, as soon as it permits the run now.

    Args:
        consume: requests it.
        renew: renews the attempt's lease.
        attempt_id: the attempt.
        asked_at: when the consumption was first requested, by the loop's clock; now by default.

    Raises:
        NotReleased: the answer is not about this attempt's run, or too late for it.
        PlacetError: the gateway refuses it, or does not answer.
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
    """Refuse an answer of 200 with a call that this attempt does not run; earlier gateways send such answers.

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
        renew: reports that the attempt still runs; its answer is the call.
        asked_at: when the lease may have started, by the loop's clock; now by default.
        is_over: returns True if the task that should have cancelled it has ended, for example after an interrupt.
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
