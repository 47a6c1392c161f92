"""Lease renewal: while a function runs, its attempt renews its lease, so that it is not treated as lost.

An attempt counts as running for as long as its tool's lease (60 s by default), which is renewed after half of it.
A function that blocks its event loop prevents its own renewals.

The lease starts with the decision. A late answer to the consumption permits the run only after a renewal was accepted
since: meanwhile the attempt may have been treated as lost, and the call given to another. For the same reason the
lease is looked at once more right before the function begins: the process may have been frozen since.

All times are those of `placet.clock`, so that any thread can compare them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from placet import clock
from placet.errors import NotReleased, PlacetError, Refused

_log = logging.getLogger(__name__)
# A little more than half, so that the log's clock and this one need not agree to the millisecond.
RENEW_AFTER, AGAIN_AFTER = 0.55, 0.1
LATE_AFTER, LATE_MOST = 0.5, 3
# Nothing begins in the last tenth of a lease.
BEGIN_WITHIN = 0.9
_BLOCKED = (
    "the event loop was blocked, for example by an async def that does not await, or the process was frozen"
)

Renew = Callable[[], Awaitable[Any]]


class Lease:
    """What its holder knows of a lease.

    A gateway takes a renewal that comes before half of the lease has passed and changes nothing, so an answer alone
    does not tell that the lease is as long as at its beginning: only another end does. It began anew no earlier than
    the first request that can have caused that.
    """

    def __init__(self, length_s: float, until: object, held_from: float) -> None:
        """Know a lease.

        Args:
            length_s: its length.
            until: its end, as the gateway told it; None if it did not.
            held_from: when it began, or earlier, by `placet.clock`.
        """
        self.length_s = length_s
        self._until = until
        self._held_from = held_from
        # No later than the lease began, as far as that is known; for what begins, not for renewals.
        self._begins_from = held_from
        self._first_asked: float | None = None
        self._is_lost = False
        # The beginning of the lease whose late renewal was told.
        self._told_of: float | None = None

    def due_in(self) -> float:
        """The time until it should be renewed, in seconds."""
        return max(self._held_from + self.length_s * RENEW_AFTER - clock.now(), 0.0)

    def lose(self) -> None:
        """Take down that the gateway refuses to renew it."""
        self._is_lost = True

    def permits_begin(self) -> bool:
        """True if what it is for may begin now, as far as its holder knows; can be asked on any thread."""
        begins_from = max(self._held_from, self._begins_from)
        return not self._is_lost and clock.now() < begins_from + self.length_s * BEGIN_WITHIN

    @property
    def again_in(self) -> float:
        """The pause before another try, in seconds."""
        return self.length_s * AGAIN_AFTER

    def asked(self) -> float:
        """Take down that something is requested now that can renew it, and return the time."""
        now = clock.now()
        if self._first_asked is None:
            self._first_asked = now
            late_s = now - self._held_from - self.length_s
            if late_s > 0 and self._told_of != self._held_from:
                # What was asked in time and not answered was not blocked.
                self._told_of = self._held_from
                _log.warning("a lease was over for %.1f s before it was renewed: %s", late_s, _BLOCKED)
        return now

    def answered(self, answer: Any, asked_at: float) -> bool:
        """Take the answer to such a request, a call or turn, and return True if the lease was renewed."""
        until = _until_in(answer)
        first = asked_at if self._first_asked is None else min(self._first_asked, asked_at)
        self._first_asked = None
        # A gateway that does not tell the end is taken at its word.
        if until is not None and until == self._until:
            # It was early: at least half of the lease was left when it was requested.
            self._begins_from = max(self._begins_from, asked_at - self.length_s * LATE_AFTER)
            return False
        self._until, self._held_from = until, first
        return True


class LeaseOver(PlacetError):
    """The lease was over before the work that it is for began: nothing was done."""

    acts = "retry"


class Consumed(NamedTuple):
    """The answer to a consumption, and the lease that it gives; None if it gives none."""

    answer: Any
    lease: Lease | None


def _until_in(answer: Any) -> object:
    return answer.get("lease_until") if isinstance(answer, Mapping) else None


class Stoppable(Protocol):
    """Work in the background."""

    def cancel(self) -> object:
        """End it."""


def lease_of(answer: Any) -> float | None:
    """The length of the lease, from the answer to the consumption; None if the gateway gives none."""
    said = answer.get("lease_seconds") if isinstance(answer, Mapping) else None
    return float(said) if isinstance(said, int | float) and said > 0 else None


async def consumed(consume: Renew, renew: Renew, attempt_id: str, asked_at: float | None = None) -> Consumed:
    """The answer to a consumption, as soon as it permits the run now, with the attempt's lease.

    Args:
        consume: requests it.
        renew: renews the attempt's lease.
        attempt_id: the attempt.
        asked_at: when the consumption was first requested, by `placet.clock`; now by default.

    Raises:
        NotReleased: the answer is not about this attempt's run, or too late for it.
        PlacetError: the gateway refuses it, or does not answer.
    """
    asked_at = clock.now() if asked_at is None else asked_at
    answer = await consume()
    check_has(answer, attempt_id)
    length_s = lease_of(answer)
    if length_s is None:
        return Consumed(answer, None)
    lease = Lease(length_s, _until_in(answer), asked_at)
    for _ in range(LATE_MOST):
        if clock.now() - asked_at < length_s * LATE_AFTER:
            return Consumed(answer, lease)
        asked_at = lease.asked()
        renewed = await renew()
        check_has(renewed, attempt_id)
        lease.answered(renewed, asked_at)
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


async def beating(lease: Lease, renew: Renew, is_over: Callable[[], bool] = lambda: False) -> None:
    """Renew a lease whenever half of it has passed, until it is cancelled or there is nothing more to renew.

    Args:
        lease: the attempt's.
        renew: reports that the attempt still runs; its answer is the call.
        is_over: returns True if the task that should have cancelled it has ended, for example after an interrupt.
    """
    pause_s = lease.due_in()
    while True:
        await asyncio.sleep(pause_s)
        if is_over():
            return
        asked_at = lease.asked()
        try:
            renewed = lease.answered(await renew(), asked_at)
        except PlacetError as error:
            if isinstance(error, Refused) and error.acts != "retry":
                lease.lose()
                _log.warning("the lease of an attempt can no longer be renewed: %s", error)
                return
            _log.info("a lease was not renewed, and it is tried again: %s", error)
            renewed = False
        pause_s = lease.due_in() if renewed else lease.again_in


@contextmanager
def alive(start: Callable[[], Stoppable] | None) -> Iterator[None]:
    """Renew a lease while a block runs; `start` begins the renewals, None means none."""
    signs = None if start is None else start()
    try:
        yield
    finally:
        if signs is not None:
            signs.cancel()
