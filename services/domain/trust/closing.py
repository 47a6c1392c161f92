"""The newest contrary facts that count for each class of a tool, for all of its classes at once.

A contrary fact about a class also counts for those with the same terms that have the same new and tainted arguments,
or more (`schemas.trust_family`). A tool may have thousands of them, so that no class is compared with each other one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import attrgetter, or_

from schemas.trust import ClassFact, ClassPart
from schemas.trust_family import Family, family_of
from schemas.trust_score import CONTRARY, Placed

_Mark = tuple[str, str]
_Marks = frozenset[_Mark]


def newest_contrary(classes: Mapping[str, Sequence[ClassPart]]) -> dict[str, tuple[Placed, ...]]:
    """For each class, the newest contrary fact of each partition that counts for it; its own are among them.

    Trust is earned anew after these, whatever there was before them.

    Args:
        classes: the parts of each class of a tool.
    """
    facts: dict[str, dict[int, dict[_Marks, ClassFact]]] = {}
    marks: dict[Family, _Marks] = {}
    for name, parts in classes.items():
        family = family_of(name)
        if family not in marks:
            marks[family] = family.marks
        for part in parts:
            contrary = [fact for fact in part.facts if fact.kind in CONTRARY]
            if contrary:
                of_partition = facts.setdefault(family.terms, {}).setdefault(part.partition, {})
                _keep_newest(of_partition, marks[family], max(contrary, key=attrgetter("offset")))
    by_terms = {
        terms: [_Ranked(partition, found) for partition, found in sorted(of_terms.items())]
        for terms, of_terms in facts.items()
    }
    newest = {
        family: tuple(
            found
            for one in by_terms.get(family.terms, ())
            if (found := one.last if family.is_digested else one.newest(own)) is not None
        )
        for family, own in marks.items()
    }
    return {name: newest[family_of(name)] for name in classes}


def _keep_newest(facts: dict[_Marks, ClassFact], marks: _Marks, fact: ClassFact) -> None:
    if marks not in facts or fact.offset > facts[marks].offset:
        facts[marks] = fact


class _Ranked:
    """The contrary facts of classes with the same terms in one partition, the newest one last.

    Sets of them are numbers with a bit for each. `_with_mark` are, for a mark that several classes have, the facts
    that count for no class without it. Other marks are digests of many paths, as many as there are facts:
    `_alone` are, for one such mark of a fact, the fact and all of its marks, and `_with_own` all of these facts.
    """

    def __init__(self, partition: int, facts: Mapping[_Marks, ClassFact]) -> None:
        ranked = sorted(facts.items(), key=lambda item: item[1].offset)
        self._placed = [Placed(partition, fact) for _, fact in ranked]
        self._with_mark: defaultdict[_Mark, int] = defaultdict(int)
        self._alone: dict[_Mark, tuple[int, _Marks]] = {}
        self._with_own = 0
        counts = Counter(mark for marks in facts for mark in marks)
        for number, (marks, _) in enumerate(ranked):
            bit = 1 << number
            for mark in marks:
                if counts[mark] > 1:
                    self._with_mark[mark] |= bit
            own = min((mark for mark in marks if counts[mark] == 1), default=None)
            if own is not None:
                self._alone[own] = bit, marks
                self._with_own |= bit

    @property
    def last(self) -> Placed:
        """The newest fact of all; there is at least one."""
        return self._placed[-1]

    def newest(self, marks: _Marks) -> Placed | None:
        """The newest fact that counts for a class with these marks."""
        others = self._with_own
        for mark in marks & self._alone.keys():
            bit, needed = self._alone[mark]
            if needed <= marks:
                others &= ~bit
        others = reduce(or_, (facts for mark, facts in self._with_mark.items() if mark not in marks), others)
        counting = ~others & ((1 << len(self._placed)) - 1)
        return self._placed[counting.bit_length() - 1] if counting else None
