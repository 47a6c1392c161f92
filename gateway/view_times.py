"""The time for which a hold's view has been shown to a person, measured here from the first fetch to the decision.

It helps to find decisions made without reading, and no permission depends on it: it is kept in memory, and unknown
after a restart or at another gateway. So it is sent beside a decision and never in it: a repeat of the decision, here
or at another gateway, is the same command. The value that the decider received first stays.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic

from schemas.actor import Actor

VIEW_TIMES_MAX = 100_000


class ViewTimes:
    """The time of each person's first look at each hold; the oldest are forgotten first."""

    def __init__(self, most: int = VIEW_TIMES_MAX) -> None:
        """Begin without views.

        Args:
            most: the maximum number of first looks that are remembered.
        """
        self._most = most
        self._first: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def note(self, actor: Actor, hold_id: str) -> None:
        """Note that a person was sent the view of a hold."""
        self._first.setdefault(_person(actor, hold_id), monotonic())
        if len(self._first) > self._most:
            self._first.popitem(last=False)

    def dwell_ms(self, actor: Actor, hold_id: str) -> int | None:
        """Return how long the view has been shown; None if this gateway never showed it."""
        seen_at = self._first.get(_person(actor, hold_id))
        return None if seen_at is None else int((monotonic() - seen_at) * 1000)


def _person(actor: Actor, hold_id: str) -> tuple[str, str, str]:
    return actor.tenant, actor.subject, hold_id
