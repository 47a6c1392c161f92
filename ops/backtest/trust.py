"""Scores of trust computed again from the facts in the log, by another function than the one in force.

The facts are followed as the trust role follows them. A verdict cites the offsets of the log through which its trust
was counted: the facts up to there, as parts keep them, are what another function is given.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ops.backtest.judging import FRACTIONS, Inputs
from schemas.ids import split_execution_key
from schemas.principals import People, TenantPeople
from schemas.record import Event
from schemas.topics import DAY_MS
from schemas.trust import ClassFact
from schemas.trust_family import closes
from schemas.trust_score import (
    IN_FORCE,
    KEPT_MAX,
    Placed,
    Posterior,
    TrustFunction,
    discounting,
    group_of,
    kept,
    posterior,
)
from services.processors.attribution import FOLLOWED, OpenCalls

CONTRARY_GROUP = group_of("rejection")
Tool = tuple[str, str, str, str]  # tenant, project, agent and tool
Place = tuple[int, int]  # a partition, and the group of a fact (`schemas.trust_score.group_of`)
Facts = dict[Place, list[ClassFact]]  # in the order of their offsets
Ends = tuple[tuple[str, Place, int], ...]


@dataclass(slots=True)
class FactsOfLog:
    """Every fact that counts for a class of calls."""

    _classes: dict[Tool, dict[str, Facts]] = field(default_factory=dict)
    _open: dict[int, OpenCalls] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Follow the next record of a partition that counts."""
        if type(event.body) not in FOLLOWED:
            return
        found = self._open.setdefault(event.partition, OpenCalls()).follow(event)
        if found is None or found.fact is None or not found.call.trust_class:
            return
        tenant, project, _ = split_execution_key(event.key)
        of_tool = self._classes.setdefault((tenant, project, found.call.agent, found.call.tool), {})
        own = of_tool.setdefault(found.call.trust_class, {})
        if found.fact == "failure" and not any(partition == event.partition for partition, _ in own):
            # A class begins with the first word of a person, in each partition.
            return
        own.setdefault((event.partition, group_of(found.fact)), []).append(
            ClassFact(
                offset=event.offset,
                at_ms=event.meta.at_ms,
                kind=found.fact,
                by=found.by,
                requester=found.call.requester,
            )
        )

    def end_of_partition(self, partition: int) -> None:
        """Forget the calls that are still open."""
        self._open.pop(partition, None)

    def ends(self, tool: Tool, trust_class: str, offsets: Mapping[int, int]) -> Ends:
        """Of each group of facts that counts for a class, how many there are up to some offsets: what a score is of.

        They are the class's own, and the contrary ones of those that close it.
        """
        found = []
        for name, of_class in self._classes.get(tool, {}).items():
            if not closes(name, trust_class):
                continue
            for place, facts in of_class.items():
                if name == trust_class or place[1] == CONTRARY_GROUP:
                    end = bisect_right(facts, offsets.get(place[0], -1), key=lambda fact: fact.offset)
                    found.append((name, place, end))
        return tuple(found)

    def placed(self, tool: Tool, ends: Ends) -> Iterator[Placed]:
        """The facts that parts keep of these groups."""
        for name, place, end in ends:
            facts = self._classes[tool][name][place]
            yield from (Placed(place[0], fact) for fact in kept(facts[max(0, end - KEPT_MAX) : end]))


class _Score(NamedTuple):
    """The scores of a class, and what they were computed from."""

    ends: Ends
    day: int
    people: People
    scores: tuple[Posterior, Posterior]


@dataclass(slots=True)
class Rescoring:
    """Trust as another function makes it of the facts that a verdict cites.

    Attributes:
        facts: those of the log.
        function: the other one.
        agreed: how many recorded scores come out as recorded by the function in force.
        differed: how many do not, so that what the other function makes of them is to be doubted.
    """

    facts: FactsOfLog
    function: TrustFunction
    agreed: int = 0
    differed: int = 0
    # The newest of each class: the verdicts of a partition come in the order of the log.
    _scores: dict[tuple[Tool, str], _Score] = field(default_factory=dict)

    def of(self, tool: Tool, inputs: Inputs, now_ms: int, people: TenantPeople) -> Inputs:
        """The inputs of a verdict with the other function's score; as they are if the verdict cites no trust."""
        trust = inputs.trust
        if trust is None or not trust.get("trust_class"):
            return inputs
        through = {int(number): offset for number, offset in trust.get("through", {}).items()}
        recorded, other = self._scored(tool, trust["trust_class"], through, now_ms, people)
        told = tuple(trust.get(name, 0.0) for name in FRACTIONS)
        is_closed = bool(trust.get("contrary_at"))
        same = (0.0 if is_closed else recorded.lower_bound, recorded.raising, recorded.lowering)
        self.agreed += told == same
        self.differed += told != same
        bound = 0.0 if is_closed else other.lower_bound
        scored = {"raising": other.raising, "lowering": other.lowering, "lower_bound": bound}
        return inputs._replace(trust={**trust, **scored})

    def _scored(
        self, tool: Tool, trust_class: str, through: Mapping[int, int], now_ms: int, people: TenantPeople
    ) -> tuple[Posterior, Posterior]:
        """The score by the function in force, and by the other one."""
        ends, day = self.facts.ends(tool, trust_class, through), now_ms // DAY_MS
        found = self._scores.get((tool, trust_class))
        if found is None or (found.ends, found.day) != (ends, day) or found.people is not people.people:
            placed, discounted = tuple(self.facts.placed(tool, ends)), discounting(people)
            scores = (
                posterior(placed, now_ms, discounted, IN_FORCE),
                posterior(placed, now_ms, discounted, self.function),
            )
            found = self._scores[tool, trust_class] = _Score(ends, day, people.people, scores)
        return found.scores
