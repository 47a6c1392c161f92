"""I6 and I8: what a view or a live writer holds, against what the log says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ops.checker.facts import Fact
from ops.checker.violations import Violation


def check_view(name: str, counted: Iterable[tuple[int, int]], facts: Sequence[Fact]) -> list[Violation]:
    """Hold the records that a view says it counted against those that count.

    Args:
        name: of the view, for the report.
        counted: (partition, offset) of every record it took into account, as often as it did.
        facts: the counting facts of all the partitions that it reads, up to where it has read.
    """
    seen = Counter(counted)
    due = {(fact.tp.partition, fact.offset) for fact in facts}
    found = [_violation(name, place, "counted a record twice") for place, times in seen.items() if times > 1]
    found += [_violation(name, place, "skipped a record") for place in sorted(due - seen.keys())]
    found += [
        _violation(name, place, "counted a record that does not count") for place in sorted(seen.keys() - due)
    ]
    return found


def _violation(name: str, place: tuple[int, int], what: str) -> Violation:
    return Violation("I8", f"{name} {place[0]}@{place[1]}", what)
