"""The meaning of each table and column of the views: PostgreSQL's comments, and the list in docs/columns.md."""

from projections.store.tables import OFFERED
from projections.tables.columns import Column, Reads

# Table or SQL view → its meaning, and its columns.
OF_TABLE: dict[str, tuple[str, dict[str, Column]]] = {
    one.name: (one.meaning, {column.name: column for column in one.columns}) for one in OFFERED
}
_JSON = frozenset(
    (one.name, column.name) for one in OFFERED for column in one.columns if column.reads is Reads.JSON
)
# Milliseconds since 1970; others that end in `_ms` are durations.
_MOMENTS = ("_at_ms", "_until_ms")


def is_json(table: str, column: str) -> bool:
    """Returns True if a text column holds JSON."""
    return (table, column) in _JSON


def is_moment(column: str) -> bool:
    """Returns True if a column is a moment in milliseconds since 1970; decided by name, in views of any version."""
    return column == "at_ms" or column.endswith(_MOMENTS)


def table_comment(table: str) -> str:
    """The meaning of a table or SQL view."""
    return OF_TABLE[table][0]


def column_comment(table: str, column: str) -> str:
    """The meaning of a column.

    Raises:
        KeyError: the column has no description.
    """
    return comment_of(OF_TABLE[table][1][column])


def comment_of(column: Column) -> str:
    """The meaning of a column, with its unit."""
    return f"{column.meaning} Milliseconds since 1970, UTC." if is_moment(column.name) else column.meaning
