"""One snapshot of the views: every query in it sees the same state."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from projections.store.port import Key, Position
from projections.store.statements import Dialect, keyed_statement, select_statement
from projections.tables.columns import R, TableOf
from projections.tables.log import POSITIONS, PositionRow

Execute = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
Stream = Callable[[str, Sequence[Any]], Generator[Sequence[Any], None, None]]
Predicate = tuple[str, Any]
# Keys in one statement: parameters are limited, and each number of keys is another statement to prepare.
KEYS_AT_ONCE = 500
# A page ends with the row that brings it to this size, however many rows were requested.
READ_BYTES = 8 * 1024 * 1024
# The dictionary of a row and its short values.
ROW_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A read transaction. `execute` runs a statement and returns all its rows; `stream` yields them one by one."""

    dialect: Dialect
    execute: Execute
    stream: Stream

    def select(self, table: TableOf[R], tail: str, parameters: Sequence[Any] = ()) -> list[R]:
        """Rows of a table.

        Args:
            table: the table.
            tail: the text after `FROM table`, with `?` for each parameter.
            parameters: the values.
        """
        text = select_statement(table, self.dialect, tail.replace("?", self.dialect.placeholder))
        return [table.made(row) for row in self.execute(text, parameters)]

    def each(self, table: TableOf[R], tail: str, parameters: Sequence[Any] = ()) -> Generator[R, None, None]:
        """As `select`, but a few rows are in memory at a time; one such query at a time."""
        text = select_statement(table, self.dialect, tail.replace("?", self.dialect.placeholder))
        with closing(self.stream(text, parameters)) as rows:
            yield from map(table.made, rows)

    def one(self, table: TableOf[R], **key: Any) -> R | None:
        """The row whose columns have these values, if there is one."""
        where = " AND ".join(f'"{name}" = ?' for name in key)
        return next(iter(self.select(table, f"WHERE {where} LIMIT 1", tuple(key.values()))), None)

    def keyed(self, table: TableOf[R], keys: Sequence[Key]) -> list[R]:
        """The rows with these primary keys, in any order; missing ones are left out."""
        found: list[R] = []
        for begin in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[begin : begin + KEYS_AT_ONCE]
            values = [value for key in some for value in key]
            rows = self.execute(keyed_statement(table, self.dialect, len(some)), values)
            found += map(table.made, rows)
        return found

    def positions(self) -> list[Position]:
        """The position up to which each partition has been read."""
        return [_position(row) for row in self.select(POSITIONS, "")]


def some_of(rows: Generator[R, None, None], bytes_max: int = READ_BYTES) -> tuple[list[R], bool]:
    """Read rows up to the one that brings them to a size.

    Returns:
        The rows, and True if there are more.
    """
    found, size = list[R](), 0
    with closing(rows):
        for row in rows:
            if size >= bytes_max:
                return found, True
            found.append(row)
            size += size_of(row)
    return found, False


def size_of(row: Mapping[str, object]) -> int:
    """The size of a row in memory, about: its texts, and its other objects."""
    return ROW_BYTES + sum(len(value) for value in row.values() if isinstance(value, str))


def _position(row: PositionRow) -> Position:
    return Position(
        row["topic"],
        row["log_partition"],
        row["topic_id"],
        row["next_offset"],
        row["claim"],
        row["record_id"],
    )


def where(predicates: Sequence[Predicate]) -> tuple[str, tuple[Any, ...]]:
    """A WHERE clause of conditions that all hold, and its parameters; those without a value are left out."""
    used = [(condition, value) for condition, value in predicates if value is not None]
    clause = "WHERE " + " AND ".join(condition for condition, _ in used) if used else ""
    return clause, tuple(value for _, value in used)
