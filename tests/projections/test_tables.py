"""The tables are a contract: documented column by column, and the same in both databases."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from projections.store.comments import column_comment, is_json, is_moment
from projections.store.sqlite import DIALECT
from projections.store.statements import create_statements
from projections.store.tables import OFFERED, TABLES
from projections.store.urls import open_view
from projections.tables.columns import Offer, Reads, Table

VIEWS_MD = Path(__file__).parents[2] / "docs" / "views.md"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_and_column_is_documented(table: Table) -> None:
    words = set(
        VIEWS_MD.read_text().replace("`", " ").replace(",", " ").replace(";", " ").replace(".", " ").split()
    )
    assert {name for name in (table.name, *table.names) if name not in words} == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_key_index_and_merge_name_columns_that_exist(table: Table) -> None:
    named = {*table.key, *table.merge, *(name for index in table.indices for name in index.columns)}
    assert named <= set(table.names)
    assert len(set(table.names)) == len(table.names)


def test_every_table_with_a_moment_has_a_time_but_what_replaces_its_rows() -> None:
    without = {table.name for table in TABLES if any(map(is_moment, table.names)) and not table.time}
    assert without == {"agents", "adoptions"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_column_whose_comment_says_json_is_json(table: Table) -> None:
    said = {
        column.name
        for column in table.columns
        if column.type == "text" and re.match("JSON(?! Pointer)", column_comment(table.name, column.name))
    }
    assert said == {column.name for column in table.columns if is_json(table.name, column.name)} & said


@pytest.mark.parametrize("offer", OFFERED, ids=lambda offer: offer.name)
def test_column_reads_as_a_moment_where_its_name_says_so(offer: Offer[Any]) -> None:
    named = {column.name for column in offer.columns if is_moment(column.name)}
    assert {column.name for column in offer.columns if column.reads is Reads.MOMENT} == named


@pytest.mark.parametrize("offer", OFFERED, ids=lambda offer: offer.name)
def test_columns_declared_are_those_that_the_database_has(offer: Offer[Any]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in create_statements(DIALECT):
            connection.execute(statement)
        there = [row[1] for row in connection.execute(f"PRAGMA table_info({offer.name})")]
    assert there == list(offer.names)


def test_share_of_who_did_nothing_good_is_nothing(tmp_path: Path) -> None:
    open_view(f"sqlite:///{tmp_path}/views.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "views.sqlite")) as connection:
        columns = [(row[1], row[2]) for row in connection.execute("PRAGMA table_info(evidence)")]
        for number, kind in enumerate(("failure", "rejection", "success")):
            known: dict[str, object] = {"kind": kind, "at_ms": number, "event_id": f"e{number}"}
            values = [known.get(name, 0 if kept == "INTEGER" else "x") for name, kept in columns]
            connection.execute(f"INSERT INTO evidence VALUES ({', '.join('?' * len(columns))})", values)
        shares = [row[0] for row in connection.execute("SELECT share FROM trust ORDER BY at_ms")]
    assert shares == [0, 0, pytest.approx(1 / 3)]
