"""docs/columns.md, made from the comments: `python -m projections.store.columns_page` writes it again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from projections.store.comments import OF_TABLE, column_comment, is_json, is_moment, table_comment
from projections.store.sqlite import DIALECT
from projections.store.statements import create_statements

PAGE = "docs/columns.md"
_HEAD = """# Tables and columns of the views

Every table and SQL view for analysts, column by column, as in PostgreSQL's comments
(`\\d+ placet.holds`).
[views.md](views.md) describes how to read them, [cookbook.md](cookbook.md) has example queries. In PostgreSQL a
column marked *time* is also available as `timestamptz` (`opened_at_ms`: `opened_at`), one marked *JSON* as `jsonb`
(`arguments`: `arguments_json`).

Two tables hold no facts and are left out: `tracking` belongs to the `eventsourcing` library (how far this view has
read, as in `placet_positions`), and `placet_layout` has one row, the version of these tables.

This page is generated from `projections/tables` by `python -m projections.store.columns_page`.
"""


def columns_page() -> str:
    """The whole page."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in create_statements(DIALECT):
            connection.execute(statement)
        return _HEAD + "".join(line for name in OF_TABLE for line in _table(connection, name))


def _table(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    yield f"\n## {name}\n\n{table_comment(name)}\n\n| column | type | meaning |\n|---|---|---|\n"
    for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})"):
        marks = [
            mark for mark, is_so in (("time", is_moment(column)), ("JSON", is_json(name, column))) if is_so
        ]
        shown = ", ".join([kind.lower() or "number", *marks])
        yield f"| `{column}` | {shown} | {column_comment(name, column)} |\n"


if __name__ == "__main__":
    Path(PAGE).write_text(columns_page())
