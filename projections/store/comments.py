"""What each table and column of the views means: PostgreSQL's comments, and the list in docs/columns.md."""

from projections.store.tables import OFFERED
from projections.tables.columns import Reads

# Table or SQL view → what it is, and what its columns mean.
OF_TABLE: dict[str, tuple[str, dict[str, str]]] = {
    one.name: (one.meaning, {column.name: column.meaning for column in one.columns}) for one in OFFERED
}
_JSON = frozenset(
    (one.name, column.name) for one in OFFERED for column in one.columns if column.reads is Reads.JSON
)
# Milliseconds since 1970; others that end in `_ms` are durations.
_MOMENTS = ("_at_ms", "_until_ms")


def is_json(table: str, column: str) -> bool:
    """Whether a column of text holds JSON."""
    return (table, column) in _JSON


def is_moment(column: str) -> bool:
    """Whether a column is a moment in milliseconds since 1970; its name tells, also in a view of another version."""
    return column == "at_ms" or column.endswith(_MOMENTS)


def table_comment(table: str) -> str:
    """What a table or SQL view is."""
    return OF_TABLE[table][0]


def column_comment(table: str, column: str) -> str:
    """What a column means.

    Raises:
        KeyError: nobody has said so.
    """
    text = OF_TABLE[table][1][column]
    return f"{text} Milliseconds since 1970, UTC." if is_moment(column) else text
