"""How long a person has had a hold's view on show: measured here, from the first fetch to the decision.

It is advice for whoever looks for decisions that nobody thought about, and no authority rests on it: it is kept in
memory, and unknown after a restart or at another gateway. So it is sent beside a decision and never in it: whoever
says the same again, here or elsewhere, says the same command. What the decider took first stands.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic

from schemas.actor import Actor

LOOKS_MAX = 100_000


class Looks:
    """When who first looked at what; the oldest are forgotten first."""

    def __init__(self, most: int = LOOKS_MAX) -> None:
        """Begin with nothing seen.

        Args:
            most: how many looks are remembered.
        """
        self._most = most
        self._first: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    def note(self, actor: Actor, hold_id: str) -> None:
        """A person was sent the view of a hold."""
        self._first.setdefault(_person(actor, hold_id), monotonic())
        if len(self._first) > self._most:
            self._first.popitem(last=False)

    def dwell_ms(self, actor: Actor, hold_id: str) -> int | None:
        """How long the view has been on show; None where this gateway never showed it."""
        seen_at = self._first.get(_person(actor, hold_id))
        return None if seen_at is None else int((monotonic() - seen_at) * 1000)


def _person(actor: Actor, hold_id: str) -> tuple[str, str, str]:
    return actor.tenant, actor.subject, hold_id
