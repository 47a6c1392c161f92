"""What a table of the views is made of: columns, indices, and how a row is merged into one that is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

ColumnType = Literal["text", "int", "real", "bytes"]
Merge = Literal["sum", "max", "first", "not_null"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `name` is the key of a row's dict too."""

    name: str
    type: ColumnType = "text"
    null: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An index; `where` makes it a partial one."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its primary key.

    `merge` says what a write does to a column of a row that is there already, where it does not replace it:
    add to it, keep the greater, keep the first, or replace it only by a value that is not null. Rows that
    several partitions write have no other columns, so that the order between partitions does not matter. `time` is
    the column by which analysts ask for a time, where they do.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indices: tuple[Index, ...] = ()
    merge: Mapping[str, Merge] = field(default_factory=dict)
    time: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)


def text(*names: str) -> tuple[Column, ...]:
    """Columns of text that are never null."""
    return tuple(Column(name) for name in names)


def integer(*names: str) -> tuple[Column, ...]:
    """Columns of whole numbers that are never null."""
    return tuple(Column(name, "int") for name in names)


def octets(*names: str) -> tuple[Column, ...]:
    """Columns of bytes that are never null."""
    return tuple(Column(name, "bytes") for name in names)


def maybe(*names: str, type: ColumnType = "text") -> tuple[Column, ...]:  # noqa: A002
    """Columns that may be null."""
    return tuple(Column(name, type, null=True) for name in names)
