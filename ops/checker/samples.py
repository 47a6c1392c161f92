"""The checker's own reading of samples: calls that trust would have released, and on which nobody has decided yet.

While one waits, no call of its class is released by trust in its partition: an agent could propose a call until it is
not sampled. Written apart from `services.runtime.contrary_facts` on purpose.
"""

from __future__ import annotations

import json

from ops.checker.facts import Fact
from ops.checker.scratch import Scratch
from ops.checker.trusted import family_of


class SamplesSeen:
    """The sampled calls that wait for people; `place` is tenant, project, agent and tool."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def begin(self, place: tuple[str, ...], trust_class: str, fact: Fact) -> None:
        """Take a verdict by which a call of a class is a sample."""
        terms = family_of(trust_class).terms
        row = (_address(fact), fact.tp.partition, json.dumps(place), terms, trust_class, fact.where)
        self._scratch.add("INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?, ?)", [row])

    def end(self, fact: Fact) -> None:
        """Take an event after which a call is no sample that waits."""
        self._scratch.add("DELETE FROM samples WHERE address = ?", [(_address(fact),)])

    def keeping(self, place: tuple[str, ...], trust_class: str, fact: Fact) -> list[str]:
        """Where the samples are in the log that keep a class asked in the partition of a fact."""
        own = family_of(trust_class)
        statement = (
            "SELECT class, place_in FROM samples WHERE part = ? AND place = ? AND terms = ? ORDER BY rowid"
        )
        rows = self._scratch.rows(statement, (fact.tp.partition, json.dumps(place), own.terms))
        return [where for name, where in rows if name == trust_class or family_of(name).closes(own)]


def _address(fact: Fact) -> str:
    return f"{fact.key}\n{fact.body.call_id}"
