"""Two views at equal offsets, table by table and row by row."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from projections.store.port import Position, Values, ViewReader
from projections.store.tables import VIEW_TABLES
from projections.tables.columns import Table
from projections.tables.log import DEAD_LETTERS

DIFFERENCES_KEPT = 5
_LETTER_PARTITION = DEAD_LETTERS.names.index("log_partition")


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs between the views. `key` identifies it, `columns` are the columns that differ.

    `columns` is empty if one of the views has no such row.
    """

    key: Values
    problem: str
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class TableReport:
    """The result of comparing one table; only the first few differences are kept."""

    name: str
    rows: int = 0
    digest: str = ""
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two views, and the offsets at which they were compared."""

    offsets: dict[str, int]
    tables: list[TableReport]

    @property
    def is_equal(self) -> bool:
        """Returns True if no row differs."""
        return all(table.differing == 0 for table in self.tables)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The partitions of the dead-letter topic whose beginning the log no longer holds, out of `of` partitions.

    The letter of a record of partition p is in partition p modulo `of` (`services.runtime.dead_letters`).
    """

    partitions: frozenset[int] = frozenset()
    of: int = 1

    def may_hold(self, letter: Values) -> bool:
        """Returns True if a letter that only the live view has can be one that the log once held."""
        partition = letter[_LETTER_PARTITION]
        assert isinstance(partition, int)
        return partition % self.of in self.partitions


def compare(rebuilt: ViewReader, live: ViewReader, forgotten: Forgotten = Forgotten()) -> Comparison:
    """Compare a rebuilt view with a live one.

    Both must be at the same offsets; otherwise they differ only because one has read more.

    Args:
        rebuilt: just read from the log.
        live: can have dead letters that the log no longer holds; those are no difference.
        forgotten: says which letters those can be.
    """
    offsets = {_name(at): at.next_offset for at in sorted(rebuilt.positions(), key=_name)}
    return Comparison(offsets, [_table(table, rebuilt, live, forgotten) for table in VIEW_TABLES])


def _name(position: Position) -> str:
    return f"{position.topic}/{position.partition:03d}"


def _table(table: Table, rebuilt: ViewReader, live: ViewReader, forgotten: Forgotten) -> TableReport:
    report = TableReport(table.name)
    excused: Callable[[Values], bool] = forgotten.may_hold if table is DEAD_LETTERS else lambda row: False
    digest = hashlib.sha256()
    width = [table.names.index(name) for name in table.key]
    for new, old in _pairs(rebuilt.rows(table), live.rows(table), width):
        if new is not None:
            report.rows += 1
            digest.update(repr(new).encode())
        if new is None and old is not None and excused(old):
            continue
        if new != old:
            report.differing += 1
            if len(report.differences) < DIFFERENCES_KEPT:
                report.differences.append(_difference(table, width, new, old))
    report.digest = digest.hexdigest()
    return report


def _difference(table: Table, width: list[int], new: Values | None, old: Values | None) -> Difference:
    if new is not None and old is not None:
        columns = tuple(name for name, a, b in zip(table.names, new, old, strict=True) if a != b)
        return Difference(_key(new, width), "differs", columns)
    if new is not None:
        return Difference(_key(new, width), "only in the rebuilt view")
    return Difference(_key(old or (), width), "only in the live view")


def _pairs(
    one: Iterator[Values], other: Iterator[Values], width: list[int]
) -> Iterator[tuple[Values | None, Values | None]]:
    """Pair the rows of two ordered lists by their keys."""
    a, b = next(one, None), next(other, None)
    while a is not None and b is not None:
        left, right = _order(a, width), _order(b, width)
        if left == right:
            yield a, b
            a, b = next(one, None), next(other, None)
        elif left < right:
            yield a, None
            a = next(one, None)
        else:
            yield None, b
            b = next(other, None)
    yield from ((row, None) for row in _rest(a, one))
    yield from ((None, row) for row in _rest(b, other))


def _rest(first: Values | None, others: Iterator[Values]) -> Iterator[Values]:
    if first is not None:
        yield first
    yield from others


def _key(row: Values, width: list[int]) -> Values:
    return tuple(row[index] for index in width)


def _order(row: Values, width: list[int]) -> tuple[tuple[int, object], ...]:
    # Both databases order text by its bytes. A damaged view can hold a value of any type.
    return tuple(_ranked(value) for value in _key(row, width))


def _ranked(value: object) -> tuple[int, object]:
    match value:
        case str():
            return 2, value.encode()
        case int() | float():
            return 1, value
        case bytes():
            return 3, value
    return 0, 0
