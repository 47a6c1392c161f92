"""The trust in an agent's calls of one class at the end of each day, from the facts in the views."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from schemas.topics import DAY_MS
from schemas.trust import ClassFact
from schemas.trust_score import KEPT_MAX, WINDOW_DAYS, Placed, Posterior, group_of, total, weighed


class Day(NamedTuple):
    """A day, in days since 1970 in UTC, with the score at its end and the number of facts behind it."""

    day: int
    posterior: Posterior
    facts: int

    @property
    def at_ms(self) -> int:
        """The last millisecond of the day."""
        return _end_of(self.day)


class _Group:
    """The facts of one partition and one group (`group_of`), by their offsets, and so by the log's time."""

    def __init__(self, placed: Sequence[Placed]) -> None:
        self._placed = placed
        self._times = [one.fact.at_ms for one in placed]

    def at(self, now_ms: int) -> Sequence[Placed]:
        """Those that a part keeps at a time and that still have weight."""
        end = bisect_right(self._times, now_ms)
        begin = bisect_right(self._times, now_ms - WINDOW_DAYS * DAY_MS)
        return self._placed[max(begin, end - KEPT_MAX) : end]


def days(
    placed: Sequence[Placed],
    last_day: int,
    discounted: Callable[[ClassFact], bool],
    closing: Iterable[Sequence[Placed]] = (),
) -> Iterator[Day]:
    """Each day on which the class has facts of its own with weight, from that of the first fact on.

    The numbers are those of `schemas.trust_score` for the last millisecond of the day, as `placet trust explain --at`
    shows them.

    Args:
        placed: all facts of the class, by partition and offset.
        last_day: the last day that is asked for, days since 1970.
        discounted: as for `schemas.trust_score.weighed`.
        closing: contrary facts that count for it, of each other class by partition and offset.
    """
    own, others = _groups(placed), [group for facts in closing for group in _groups(facts)]
    times = [one.fact.at_ms // DAY_MS for one in placed]
    if not times:
        return
    for day in range(min(times), min(last_day, max(times) + WINDOW_DAYS) + 1):
        now_ms = _end_of(day)
        kept = [one for group in own for one in group.at(now_ms)]
        if kept:
            kept += [one for group in others for one in group.at(now_ms)]
            yield Day(day, total(weighed(kept, now_ms, discounted)), len(kept))


def _groups(placed: Sequence[Placed]) -> list[_Group]:
    begins: dict[int, int] = {}
    for partition, fact in placed:
        if group_of(fact.kind) < 2:
            begins.setdefault(partition, fact.offset)
    found: dict[tuple[int, int], list[Placed]] = {}
    for one in placed:
        # A class begins with the first word of a person.
        if one.partition in begins and one.fact.offset >= begins[one.partition]:
            found.setdefault((one.partition, group_of(one.fact.kind)), []).append(one)
    return [_Group(group) for group in found.values()]


def _end_of(day: int) -> int:
    return (day + 1) * DAY_MS - 1
