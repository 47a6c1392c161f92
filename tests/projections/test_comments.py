"""Every column that analysts see is explained, in PostgreSQL itself and in docs/columns.md."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from projections.store.columns_page import PAGE, columns_page
from projections.store.comments import OF_TABLE, column_comment, table_comment
from projections.store.offered import columns, comments, offered
from projections.store.postgres_address import split_url
from projections.store.sql_views import VIEW_NAMES
from projections.store.sqlite import DIALECT
from projections.store.statements import create_statements
from projections.store.tables import TABLES
from projections.store.urls import open_view

REPOSITORY = Path(__file__).parents[2]
SHOWN = (*(table.name for table in TABLES), *VIEW_NAMES)

TYPES = {
    "text": ("text",),
    "integer": ("bigint", "numeric"),
    "number": ("double precision", "numeric"),
    "bytes": ("bytea",),
}


def columns_of(name: str) -> list[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in create_statements(DIALECT):
            connection.execute(statement)
        return [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]


@pytest.mark.parametrize("name", SHOWN)
def test_every_table_and_column_has_a_comment_and_no_comment_is_of_nothing(name: str) -> None:
    there = columns_of(name)
    assert table_comment(name)
    assert all(column_comment(name, column) for column in there)
    assert set(OF_TABLE[name][1]) <= set(there)
    assert set(OF_TABLE) == set(SHOWN)


def test_page_of_columns_says_what_the_comments_say() -> None:
    assert (REPOSITORY / PAGE).read_text() == columns_page(), (
        "generate it again: python -m projections.store.columns_page"
    )


@pytest.mark.postgres
def test_page_of_columns_says_the_types_that_postgres_has(postgres_url: str) -> None:
    url = f"{postgres_url}?schema=typed"
    open_view(url).close()
    plain, _ = split_url(url)
    said: dict[tuple[str, str], str] = {}
    for section in (REPOSITORY / PAGE).read_text().split("\n## ")[1:]:
        for column, kind in re.findall(r"^\| `(\w+)` \| (\w+)", section, re.MULTILINE):
            said[section.split("\n")[0], column] = kind
    with psycopg.connect(plain) as connection:
        for name in SHOWN:
            for column, kind in columns(connection, "typed_data", name):
                # Sums and means of integers are numeric.
                assert kind in TYPES[said[name, column]], (name, column, kind)


@pytest.mark.postgres
def test_postgres_has_the_comments_and_a_changed_one_is_written_anew(postgres_url: str) -> None:
    url = f"{postgres_url}?schema=commented"
    open_view(url).close()
    plain, schema = split_url(url)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("COMMENT ON COLUMN commented.holds.question IS 'something else'")
        open_view(url).close()
        there = comments(connection, schema)
        for name in SHOWN:
            assert there[name, ""] == table_comment(name)
            for one in offered(connection, "commented_data", name):
                assert there[name, one.name] == one.comment != ""
