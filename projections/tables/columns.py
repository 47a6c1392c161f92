"""How a table of the views is declared: a row type with its columns, a key, indices, and merges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from operator import itemgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

ColumnType = Literal["text", "int", "real", "bytes"]
Merge = Literal["sum", "max", "first", "not_null"]
Values = tuple[object, ...]
Key = tuple[str | int, ...]
# A TypedDict of a module here.
R = TypeVar("R", bound=Mapping[str, object])


class Reads(Enum):
    """How a column is read if not as stored.

    As JSON of text, a time of milliseconds, a boolean of 0 or 1, or a date of text (ISO 8601).
    """

    JSON = "JSON"
    MOMENT = "time"
    FLAG = "boolean"
    DAY = "date"


Json = Annotated[str, Reads.JSON]
Moment = Annotated[int, Reads.MOMENT]
Flag = Annotated[int, Reads.FLAG]
Day = Annotated[str, Reads.DAY]

_TYPES: dict[object, ColumnType] = {str: "text", int: "int", float: "real", bytes: "bytes"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `name` is also the key in a row's dict; `meaning` is the documentation for analysts."""

    name: str
    type: ColumnType = "text"
    null: bool = False
    meaning: str = ""
    reads: Reads | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """An index; `where` makes it a partial one."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True)
class Offer(Generic[R]):
    """A table that analysts can read or, of this class itself, a SQL view (`projections.store.statements`)."""

    name: str
    row: type[R]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns in order, from the row's type."""
        hints = get_type_hints(self.row, include_extras=True)
        return tuple(_column(name, hint) for name, hint in hints.items())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def meaning(self) -> str:
        """The meaning of the table: the docstring of the row's type."""
        return " ".join((self.row.__doc__ or "").split())

    def made(self, values: Sequence[object]) -> R:
        """The row with these values, in the order of the columns."""
        return cast("R", dict(zip(self.names, values, strict=True)))


@dataclass(frozen=True)
class TableOf(Offer[R]):
    """A table with its primary key.

    `merge` says how a write changes a column of an existing row, if it does not replace the value: add to it, keep
    the greater, keep the first, or replace it only by a value that is not null. Rows that several partitions write
    have no other columns, so that the order between partitions does not matter. `time` is the column by which
    analysts select a period, if there is one.
    """

    key: tuple[str, ...] = ()
    indices: tuple[Index, ...] = ()
    merge: Mapping[str, Merge] = field(default_factory=dict)
    time: str = ""

    @cached_property
    def values(self) -> Callable[[R], Values]:
        """Returns a function that takes a row's values, in the order of the columns."""
        getter: Callable[[Any], Values] = itemgetter(*self.names)
        return getter

    def key_of(self, row: R) -> Key:
        """A row's primary key."""
        return tuple(cast("str | int", row[name]) for name in self.key)


# A table with any row type.
Table: TypeAlias = TableOf[Any]


def _column(name: str, hint: object) -> Column:
    kinds: set[object] = set()
    said: list[object] = []
    _read(hint, kinds, said)
    (kind,) = kinds - {NoneType}
    meaning = next((one for one in said if isinstance(one, str)), "")
    reads = next((one for one in said if isinstance(one, Reads)), None)
    return Column(name, _TYPES[kind], NoneType in kinds, meaning, reads)


def _read(hint: object, kinds: set[object], said: list[object]) -> None:
    """Take a hint apart: the plain types, and their annotations, the outermost first."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *more = get_args(hint)
        said += more
        _read(inner, kinds, said)
    elif origin in (Union, UnionType):
        for one in get_args(hint):
            _read(one, kinds, said)
    else:
        kinds.add(hint)
