"""The values that people have approved for an agent and a tool: others are new to it.

A value is known if people approved calls with it more often than they were against such calls: one approval by
mistake of what was rejected before makes nothing known.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import and_, attrgetter, is_
from typing import NamedTuple

from msgspec import Struct

from schemas.principals import TenantPeople
from schemas.topics import DAY_MS
from schemas.trust import ANY, ClassFact, ClassPart, NumberRange
from schemas.trust_family import family_of
from schemas.trust_score import Placed, discounting, weighed, weight
from services.domain.trust.book import KnownTrust
from services.domain.trust.closing import newest_contrary

_KEPT_MAX = 16_384
# Of a tool with more classes in force nothing is known: each new fact would keep the decider from other tenants.
CLASSES_MAX = 2_000
# Nor of one with more facts, values of them, or ranges of numbers beside values.
FACTS_MAX = 20_000
VALUES_MAX = 100_000
RANGES_MAX = 50_000


class Approved(Struct, frozen=True):
    """What people have approved.

    `worth` is, for the digest of each identifying value, what the approvals of calls with it are worth, less what
    contrary facts are; `numbers` are, for each path of the arguments, the least and the greatest number that was
    approved in a call with the value of a digest, or in any call (`ANY`). `together` are the parts by the terms of
    their arguments (`schemas.trust_family`), with their approvals. Without `is_whole` there is more than is looked
    at: every value counts as one that people were against.
    """

    worth: Mapping[str, float] = {}
    numbers: Mapping[tuple[str, str], tuple[float, float]] = {}
    together: Mapping[str, Sequence["Together"]] = {}
    is_whole: bool = True

    def has(self, digest: str) -> bool:
        """True if people have approved a value, and no more often been against calls with it."""
        return self.worth.get(digest, 0.0) > 0

    def opposes(self, digest: str) -> bool:
        """True if people were more often against calls with a value than they approved some."""
        return not self.is_whole or self.worth.get(digest, 0.0) < 0

    def covers(self, path: str, number: float, digests: Iterable[str]) -> bool:
        """True if a number is within what people approved at its path, together with each of the call's values.

        Otherwise a small payment to a stranger, approved once, would let a large one through that only others get.
        """
        ranges = [self.numbers.get((digest, path)) for digest in (ANY, *digests)]
        return all(found is not None and found[0] <= number <= found[1] for found in ranges)

    def joins(
        self,
        terms: str,
        digests: Sequence[str],
        numbers: Sequence[NumberRange],
        novel: frozenset[str],
        standing: frozenset[str] = frozenset(),
    ) -> bool:
        """True if people have approved what a call has together.

        That is, calls of these terms with all of its known values, in which something was new wherever it is in this
        one, and nothing where this one has what is known (`standing`): one in which no number was less, and one in
        which none was more. Otherwise a small price of a large quantity and a large price of a small one would make
        both large, and a stranger would be paid what only others are, or get the file that was new to a known person
        once.
        """
        least = most = False
        for one in self.together.get(terms, ()):
            if not novel <= one.novel or (novel and not standing.isdisjoint(one.novel)):
                continue
            for ranges in one.with_all(digests):
                pairs = [(ranges.get(path), low, high) for path, low, high in numbers]
                least = least or all(known is not None and known[0] <= low for known, low, _ in pairs)
                most = most or all(known is not None and known[1] >= high for known, _, high in pairs)
                if least and most:
                    return True
        return False


class Together(Struct, frozen=True):
    """The approvals of one part of a class.

    `novel` are the paths of what was new in them, as the class names them; `approvals` are those with the value of a
    digest, each one a bit; `numbers` are those of each, by their paths.
    """

    novel: frozenset[str]
    approvals: Mapping[str, int]
    numbers: Sequence[Mapping[str, tuple[float, float]]]

    def with_all(self, digests: Iterable[str]) -> Iterator[Mapping[str, tuple[float, float]]]:
        """The numbers of each approval of a call that had all of these values."""
        left = reduce(
            and_, (self.approvals.get(digest, 0) for digest in digests), (1 << len(self.numbers)) - 1
        )
        while left:
            number = left.bit_length() - 1
            yield self.numbers[number]
            left ^= 1 << number


_Ranges = dict[tuple[str, str], tuple[float, float]]


class _From(NamedTuple):
    """What something is computed from: the book returns the same parts until one of them changes."""

    parts: tuple[ClassPart, ...]
    day: int
    people: TenantPeople
    closing: tuple[Placed, ...] = ()

    def is_same(self, other: "_From") -> bool:
        return (
            len(self.parts) == len(other.parts)
            and all(map(is_, self.parts, other.parts))
            and self.day == other.day
            and self.people.people is other.people.people
            and [*map(_PLACE, self.closing)] == [*map(_PLACE, other.closing)]
        )


class _Kept(NamedTuple):
    """What was computed, and from what."""

    source: _From
    approved: Approved


NOTHING_APPROVED = Approved()
TOO_MUCH = Approved(is_whole=False)
_TOOL = attrgetter("tenant", "project", "agent", "tool", "topic_id")
_CLASS = attrgetter("tenant", "project", "agent", "tool", "topic_id", "trust_class")
_PLACE = attrgetter("partition", "fact.offset", "fact.at_ms")
_of_tools: dict[tuple[str, ...], _Kept] = {}
_of_classes: dict[tuple[str, ...], _Kept] = {}


def approved_by(known: KnownTrust, now_ms: int, people: TenantPeople) -> Approved:
    """The values in the approvals that raise trust, in calls of any class.

    Args:
        known: what is known of the agent and the tool.
        now_ms: the log's time.
        people: the tenant's people: the words of withdrawn accounts approve nothing.
    """
    if not known.all_classes:
        return NOTHING_APPROVED
    source = _From(known.all_classes, now_ms // DAY_MS, people)
    return _kept(_of_tools, _TOOL(known.all_classes[0]), source, partial(_of_tool, source, now_ms))


def _of_tool(source: _From, now_ms: int) -> Approved:
    classes: dict[str, list[ClassPart]] = {}
    for part in source.parts:
        # A part whose newest fact has no weight any more approves nothing.
        if weight(part.last_evidence_at_ms, now_ms):
            classes.setdefault(part.trust_class, []).append(part)
    if len(classes) > CLASSES_MAX or _is_too_much(source.parts):
        return TOO_MUCH
    closing = newest_contrary(classes)
    found = []
    for name, parts in classes.items():
        # A change of one class is computed for it, and those that it closes, alone: a tool may have thousands.
        of_class = source._replace(parts=tuple(parts), closing=closing[name])
        found.append(_kept(_of_classes, _CLASS(parts[0]), of_class, partial(_of_class, of_class, now_ms)))
    return _joined(found)


def _is_too_much(parts: tuple[ClassPart, ...]) -> bool:
    values = sum(len(part.against) + sum(len(fact.values) for fact in part.facts) for part in parts)
    return values > VALUES_MAX or sum(len(part.facts) for part in parts) > FACTS_MAX


def _of_class(source: _From, now_ms: int) -> Approved:
    """The values in the facts of a class; those of other classes count for them, but are not its own."""
    own = [Placed(part.partition, fact) for part in source.parts for fact in part.facts]
    if sum((1 + len(one.fact.values)) * len(one.fact.numbers) for one in own) > RANGES_MAX:
        return TOO_MUCH
    shares = _against(source.parts, now_ms)
    if ANY in shares:
        return TOO_MUCH
    numbers: _Ranges = {}
    raised: defaultdict[int, list[ClassFact]] = defaultdict(list)
    found = weighed([*own, *source.closing], now_ms, discounting(source.people))
    for one in found[: len(own)]:
        fact = one.placed.fact
        share = one.raising - one.lowering
        for value in fact.values:
            shares[value].append(share)
        if one.raising:
            digests = (ANY, *fact.values)
            ranges = (((by, path), (least, most)) for path, least, most in fact.numbers for by in digests)
            _widen(numbers, ranges)
            raised[one.placed.partition].append(fact)
    family = family_of(source.parts[0].trust_class)
    together = tuple(_together(family.novel, facts) for facts in raised.values())
    return Approved(_summed(shares), numbers, {family.terms: together})


def _together(novel: frozenset[str], facts: Sequence[ClassFact]) -> Together:
    """The approvals of one part: they are few, and so the numbers whose bits they are stay small."""
    found: defaultdict[str, int] = defaultdict(int)
    for number, fact in enumerate(facts):
        for value in fact.values:
            found[value] |= 1 << number
    ranges = [{path: (least, most) for path, least, most in fact.numbers} for fact in facts]
    return Together(novel, found, ranges)


def _against(parts: Iterable[ClassPart], now_ms: int) -> defaultdict[str, list[float]]:
    """What the contrary facts that are not kept any more are worth against values; `ANY`: against some value."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for part in parts:
        for value, worth, at_ms in part.against:
            if lowering := worth * weight(at_ms, now_ms):
                shares[value].append(-lowering)
    return shares


def _joined(found: Iterable[Approved]) -> Approved:
    worth: dict[str, float] = {}
    shares: dict[str, list[float]] = {}
    numbers: _Ranges = {}
    together: dict[str, list[Together]] = {}
    for one in found:
        # Most values are of one class alone.
        for value in worth.keys() & one.worth.keys():
            shares.setdefault(value, [worth[value]]).append(one.worth[value])
        worth.update(one.worth)
        _widen(numbers, one.numbers.items())
        if not one.is_whole or len(numbers) > RANGES_MAX:
            return TOO_MUCH
        for terms, classes in one.together.items():
            together.setdefault(terms, []).extend(classes)
    return Approved(worth | _summed(shares), numbers, together)


def _summed(shares: Mapping[str, list[float]]) -> dict[str, float]:
    """The sums, which do not depend on the order of what is added: each reader has another one."""
    return {value: round(math.fsum(found), 6) for value, found in shares.items()}


def _widen(numbers: _Ranges, more: Iterable[tuple[tuple[str, str], tuple[float, float]]]) -> None:
    for place, (least, most) in more:
        known = numbers.get(place, (least, most))
        numbers[place] = min(least, known[0]), max(most, known[1])


def _kept(
    memory: dict[tuple[str, ...], _Kept],
    name: tuple[str, ...],
    source: _From,
    compute: Callable[[], Approved],
) -> Approved:
    """What was computed from the same; else it is computed, and kept."""
    kept = memory.get(name)
    if kept is None or not kept.source.is_same(source):
        if len(memory) >= _KEPT_MAX:
            memory.clear()
        kept = memory[name] = _Kept(source, compute())
    return kept.approved
