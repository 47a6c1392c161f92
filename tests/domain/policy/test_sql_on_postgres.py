"""What a schema's own objects do is not in the text of a statement: PostgreSQL shows it, and what stops it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from services.domain.policy.sql import sql_kind

pytestmark = pytest.mark.postgres

SCHEMA = """
CREATE TABLE t (a int);
CREATE TABLE gone (a int);
CREATE FUNCTION purge(t) RETURNS int LANGUAGE sql AS 'DELETE FROM gone; SELECT 1';
CREATE CAST (t AS int) WITH FUNCTION purge(t);
CREATE FUNCTION wipe(int, int) RETURNS int LANGUAGE sql AS 'DELETE FROM gone; SELECT 1';
CREATE OPERATOR <-> (FUNCTION = wipe, LEFTARG = int, RIGHTARG = int);
CREATE FUNCTION lower(int) RETURNS int LANGUAGE sql AS 'DELETE FROM gone; SELECT 1';
CREATE VIEW v AS SELECT purge(t) AS a FROM t;
INSERT INTO t VALUES (1);
"""
# docs/policy.md names these: nothing in the text tells them from a column, a built-in function or a table.
NOT_IN_THE_TEXT = [
    "SELECT t.purge FROM t",
    "SELECT x.purge FROM t AS x WHERE x.purge = 1",
    "SELECT CAST(t AS int) FROM t",
    "SELECT t::int FROM t",
    "SELECT lower(a) FROM t",
    "SELECT a FROM v",
]
IN_THE_TEXT = [
    "SELECT purge(t) FROM t",
    "SELECT (t).purge FROM t",
    "SELECT (SELECT t).purge FROM t",
    "SELECT (x.t).purge FROM (SELECT t FROM t) AS x",
    "SELECT a <-> a FROM t",
    "SELECT a OPERATOR(public.<->) a FROM t",
]


@pytest.fixture
def database(postgres_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    schema = f"s{uuid.uuid4().hex[:10]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path TO {schema}, pg_catalog".encode())
        connection.execute(SCHEMA.encode())
        yield connection
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def _deletes(connection: psycopg.Connection[Any], sql: str) -> bool:
    connection.execute("INSERT INTO gone VALUES (1)")
    connection.execute(sql.replace("public.", "").encode())
    return connection.execute("SELECT count(*) FROM gone").fetchone() == (0,)


@pytest.mark.parametrize("sql", IN_THE_TEXT)
def test_case_33_call_that_the_text_shows_is_no_select(database: psycopg.Connection[Any], sql: str) -> None:
    assert _deletes(database, sql)
    assert _kind(sql) != "select"


@pytest.mark.parametrize("sql", NOT_IN_THE_TEXT)
def test_call_that_no_text_shows_writes_nothing_in_a_transaction_that_only_reads(
    database: psycopg.Connection[Any], sql: str
) -> None:
    assert sql_kind(sql, "postgres") == "select"
    assert _deletes(database, sql)
    database.execute("INSERT INTO gone VALUES (1)")
    database.execute("SET default_transaction_read_only = on")

    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        database.execute(sql.encode())

    database.execute("SET default_transaction_read_only = off")
    assert database.execute("SELECT count(*) FROM gone").fetchone() == (1,)


def _kind(sql: str) -> str:
    try:
        return sql_kind(sql, "postgres")
    except ValueError:
        return "error"
