"""The columns of a SQL view of the façade: those of the table behind it, and its times and JSON with types.

A column of milliseconds `opened_at_ms` is also offered as `opened_at`, one of JSON text `arguments` as
`arguments_json`. The text column stays: it is byte for byte what was decided on, which jsonb is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from projections.store.comments import column_comment, is_json, is_moment, table_comment

Connection = psycopg.Connection[tuple[Any, ...]]
MOMENT = "to_timestamp({} / 1000.0)"
# The type jsonb cannot hold U+0000, which canonical JSON can contain: it is shown as U+FFFD, as in text.
_JSONB = (
    "(CASE WHEN position('\\u0000' in {0}) = 0 THEN NULLIF({0}, '') "
    "ELSE regexp_replace({0}, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000', '\\1\ufffd', 'g') END)::jsonb"
)
_COLUMNS = (
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
    "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
_COMMENTS = """
SELECT c.relname, COALESCE(a.attname, ''), d.description
FROM pg_description d
JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND d.objsubid > 0
WHERE n.nspname = %s
"""


class Offered(NamedTuple):
    """A column of a SQL view: its name and type, its SQL expression, and its meaning (empty: unknown)."""

    name: str
    type: str
    expression: Composable
    comment: str

    @property
    def declared(self) -> tuple[str, str]:
        """Name and type, as `columns` returns them."""
        return self.name, self.type


def columns(connection: Connection, schema: str, name: str) -> list[tuple[str, str]]:
    """Names and types of the columns of a table or view, in order; empty where there is none."""
    found = connection.execute(_COLUMNS, (f'"{schema}"."{name}"',)).fetchall()
    return [(str(column), str(kind)) for column, kind in found]


def offered(connection: Connection, schema: str, name: str) -> list[Offered]:
    """The columns offered for a table or view.

    Args:
        connection: to the database.
        schema: of the tables.
        name: of the table.
    """
    own = columns(connection, schema, name)
    plain = [Offered(column, kind, Identifier(column), _comment(name, column)) for column, kind in own]
    typed = [_typed(name, column, kind) for column, kind in own]
    return [*plain, *(one for one in typed if one is not None)]


def comment_on(connection: Connection, schema: str, name: str, shown: Sequence[Offered]) -> None:
    """Write the comments of a SQL view that are missing or differ."""
    there = comments(connection, schema)
    view = Identifier(schema, name)
    if there.get((name, "")) != table_comment(name):
        connection.execute(SQL("COMMENT ON VIEW {} IS {}").format(view, Literal(table_comment(name))))
    for one in shown:
        if one.comment and there.get((name, one.name)) != one.comment:
            place = Identifier(schema, name, one.name)
            connection.execute(SQL("COMMENT ON COLUMN {} IS {}").format(place, Literal(one.comment)))


def comments(connection: Connection, schema: str) -> Mapping[tuple[str, str], str]:
    """The comments in a schema: (view, column) → text; the column is empty for the view itself."""
    return {(view, column): text for view, column, text in connection.execute(_COMMENTS, (schema,))}


def _typed(table: str, column: str, kind: str) -> Offered | None:
    if is_moment(column) and kind == "bigint":
        name = column.removesuffix("_ms")
        text = f"{column} as a timestamp."
        return Offered(name, "timestamp with time zone", _made_by(MOMENT, column), text)
    if is_json(table, column) and kind == "text":
        return Offered(f"{column}_json", "jsonb", _made_by(_JSONB, column), f"{column} as jsonb.")
    return None


def _made_by(expression: str, column: str) -> Composed:
    return Composed([SQL(expression.format(f'"{column}"'))])


def _comment(table: str, column: str) -> str:
    try:
        return column_comment(table, column)
    except KeyError:
        # A column of another version, which documents it itself.
        return ""
