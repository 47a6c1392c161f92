"""How long a person has had a hold's view on show: measured here, from the first fetch to the decision.

It is advice for whoever looks for decisions that nobody thought about, and no authority rests on it: it is kept in
memory, and unknown after a restart or at another gateway.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import Any

from projections.folds.rows import Row, json_value
from schemas.actor import Actor

LOOKS_MAX = 100_000


class Looks:
    """When who first looked at what; the oldest are forgotten first."""

    def __init__(self, most: int = LOOKS_MAX) -> None:
        """Begin with nothing seen.

        Args:
            most: how many looks, and how many measured decisions, are remembered.
        """
        self._most = most
        self._first: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._measured: OrderedDict[tuple[str, str, str, Any], int | None] = OrderedDict()

    def note(self, actor: Actor, hold_id: str) -> None:
        """A person was sent the view of a hold."""
        _remember(self._first, (actor.tenant, actor.subject, hold_id), monotonic(), self._most)

    def dwell_ms(self, actor: Actor, row: Row, word: Any) -> int | None:
        """How long the view was on show before a decision; None where this gateway never showed it.

        A decision that is sent again is the same command only with the same measure: it is taken once for each word,
        and for a word that stands in the log it is what stands there.

        Args:
            actor: who decides.
            row: the hold's.
            word: names the decision: its idempotency key and content.
        """
        for vote in json_value(row["votes"]):
            if vote["by"] == actor.subject:
                recorded: int | None = vote.get("dwell_ms")
                return recorded
        person = (actor.tenant, actor.subject, row["hold_id"])
        seen_at = self._first.get(person)
        now_ms = None if seen_at is None else int((monotonic() - seen_at) * 1000)
        measured: int | None = _remember(self._measured, (*person, word), now_ms, self._most)
        return measured


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> Any:
    """The first value that was given for a key."""
    if key not in known:
        known[key] = value
        if len(known) > most:
            known.popitem(last=False)
    return known.get(key, value)
