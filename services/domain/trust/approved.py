"""The values that people have approved for an agent and a tool: others are new to it.

A value is known if people approved calls with it more often than they were against such calls: one approval by
mistake of what was rejected before makes nothing known.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, is_
from typing import NamedTuple

from msgspec import Struct

from schemas.principals import TenantPeople
from schemas.topics import DAY_MS
from schemas.trust import ClassPart, NumberRange
from schemas.trust_score import Placed, discounting, weighed, weight
from services.domain.trust.book import KnownTrust

_KEPT_MAX = 16_384


class Approved(Struct, frozen=True):
    """What people have approved.

    `worth` is, for the digest of each identifying value, what the approvals of calls with it are worth, less what
    contrary facts are; `numbers` are, for each path of the arguments, the least and the greatest approved number.
    """

    worth: Mapping[str, float] = {}
    numbers: Mapping[str, tuple[float, float]] = {}

    def has(self, digest: str) -> bool:
        """True if people have approved a value, and no more often been against calls with it."""
        return self.worth.get(digest, 0.0) > 0


class _Kept(NamedTuple):
    """What was computed, and from what: the book returns the same parts until one of them changes."""

    parts: tuple[ClassPart, ...]
    day: int
    people: TenantPeople
    approved: Approved

    def is_of(self, parts: tuple[ClassPart, ...], day: int, people: TenantPeople) -> bool:
        is_same = len(parts) == len(self.parts) and all(map(is_, parts, self.parts))
        return is_same and self.day == day and self.people.people is people.people


NOTHING_APPROVED = Approved()
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
    return _kept(_of_tools, _TOOL, known.all_classes, now_ms, people, _of_tool)


def _of_tool(parts: tuple[ClassPart, ...], now_ms: int, people: TenantPeople) -> Approved:
    classes: dict[str, list[ClassPart]] = {}
    for part in parts:
        # A part whose newest fact has no weight any more approves nothing.
        if weight(part.last_evidence_at_ms, now_ms):
            classes.setdefault(part.trust_class, []).append(part)
    # A change of one class is computed for it alone: a tool may have thousands.
    return _joined(
        _kept(_of_classes, _CLASS, tuple(of_class), now_ms, people, _of_class)
        for of_class in classes.values()
    )


def _of_class(parts: tuple[ClassPart, ...], now_ms: int, people: TenantPeople) -> Approved:
    placed = (Placed(part.partition, fact) for part in parts for fact in part.facts)
    worth: defaultdict[str, float] = defaultdict(float)
    numbers: dict[str, tuple[float, float]] = {}
    for one in weighed(placed, now_ms, discounting(people)):
        fact = one.placed.fact
        for value in fact.values:
            worth[value] += one.raising - one.lowering
        if one.raising:
            _widen(numbers, fact.numbers)
    return Approved(worth, numbers)


def _joined(found: Iterable[Approved]) -> Approved:
    worth: defaultdict[str, float] = defaultdict(float)
    numbers: dict[str, tuple[float, float]] = {}
    for one in found:
        for value, share in one.worth.items():
            worth[value] += share
        _widen(numbers, ((path, *ends) for path, ends in one.numbers.items()))
    return Approved(worth, numbers)


def _widen(numbers: dict[str, tuple[float, float]], more: Iterable[NumberRange]) -> None:
    for path, least, most in more:
        known = numbers.get(path, (least, most))
        numbers[path] = min(least, known[0]), max(most, known[1])


_Compute = Callable[[tuple[ClassPart, ...], int, TenantPeople], Approved]
_TOOL = attrgetter("tenant", "project", "agent", "tool", "topic_id")
_CLASS = attrgetter("tenant", "project", "agent", "tool", "topic_id", "trust_class")


def _kept(
    memory: dict[tuple[str, ...], _Kept],
    name_of: Callable[[ClassPart], tuple[str, ...]],
    parts: tuple[ClassPart, ...],
    now_ms: int,
    people: TenantPeople,
    compute: _Compute,
) -> Approved:
    """What was computed for the same parts, day and people; else it is computed, and kept."""
    name, day = name_of(parts[0]), now_ms // DAY_MS
    kept = memory.get(name)
    if kept is None or not kept.is_of(parts, day, people):
        if len(memory) >= _KEPT_MAX:
            memory.clear()
        kept = memory[name] = _Kept(parts, day, people, compute(parts, now_ms, people))
    return kept.approved
