"""The tables are a contract: documented column by column, and the same in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.store.tables import TABLES, Table

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
