"""The cookbook's queries, as they stand on its page, on SQLite, PostgreSQL and DuckDB."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from projections.store.tables import TABLES
from projections.store.urls import open_view
from projections.tables.columns import Table
from tests.projections.filling import Filler
from tests.projections.histories import START_MS, hold_id_of
from tests.projections.story import KEY, story

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text()
BLOCKS = re.findall(r"^```sql(?: (\w+))?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
QUESTIONS = [text for engine, text in BLOCKS if not engine]
OF_POSTGRES = [text for engine, text in BLOCKS if engine == "postgres"]
(PYTHON,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
OF_DUCKDB = [text for engine, text in BLOCKS if engine == "duckdb"]
TITLES = re.findall(r"^## \d+\. (.*)$", PAGE, re.MULTILINE)

Ask = Callable[[str], list[tuple[Any, ...]]]


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(round(float(v), 6) if isinstance(v, float | Decimal) else v for v in row) for row in rows]


def filled(url: str) -> None:
    filler = Filler(open_view(url))
    filler.fill(story())
    filler.store.close()


def on_sqlite(directory: Path) -> Iterator[Ask]:
    filled(f"sqlite:///{directory}/views.sqlite")
    with closing(sqlite3.connect(directory / "views.sqlite")) as connection:
        yield lambda text: plain(connection.execute(text).fetchall())


def on_duckdb(directory: Path) -> Iterator[Ask]:
    filled(f"sqlite:///{directory}/views.sqlite")
    # The page's own step, in a home directory in which no extension was ever installed.
    subprocess.run([sys.executable, "-c", PYTHON], env={**os.environ, "HOME": str(directory)}, check=True)
    # A repository that nobody answers: what the step did not install is not fetched.
    config: dict[str, Any] = {
        "home_directory": str(directory),
        "custom_extension_repository": "http://127.0.0.1:1",
    }
    with duckdb.connect(config=config) as connection:
        for text in OF_DUCKDB:
            connection.execute(text.replace("'views.sqlite'", f"'{directory}/views.sqlite'"))
        yield lambda text: plain(connection.execute(text).fetchall())


def on_postgres(url: str) -> Iterator[Ask]:
    schema = f"v{uuid.uuid4().hex[:10]}"
    filled(f"{url}{'&' if '?' in url else '?'}schema={schema}")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(OF_POSTGRES[0].replace("placet", schema).encode())
        yield lambda text: plain(connection.execute(text.encode()).fetchall())


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    if request.param == "postgres":
        yield from on_postgres(request.getfixturevalue("postgres_url"))
    else:
        yield from {"sqlite": on_sqlite, "duckdb": on_duckdb}[request.param](tmp_path)


GB = "GB29NWBK60161331926819"
MONEY = ("billing-bot", "send_money")
EDITED = '{"amount":50,"note":"\\u0000half","to":"GB29"}'
HOLD_OF_WAITING = hold_id_of(KEY, "waiting")
ANSWERS: list[list[tuple[Any, ...]]] = [
    [(HOLD_OF_WAITING, "permission", *MONEY, f"Pay 98.7 to {GB}?", START_MS + 322, 3599.678)],
    [("ann@acme", 4, 3, 0.007), ("bob@acme", 2, 2, 0.0105)],
    [("ann@acme", 1, 1), ("bob@acme", 1, 0)],
    [
        ("carl@acme", "reject", "already_decided", "bob@acme", "approve", 14),
        ("ann@acme", "approve", "expired", None, None, None),
    ],
    [(*MONEY, "/amount", "replace", 1), (*MONEY, "/note", "add", 1)],
    [
        ("run-1", "edited", 2, "ann@acme", "replace", "/amount", "98.7", "50", "half of it"),
        ("run-1", "edited", 2, "ann@acme", "add", "/note", None, '"\\u0000half"', "half of it"),
    ],
    # Six words, four decisions: one word of two waited for the other, and one was on what had happened.
    [(*MONEY, 3, 1, 0, 6, 0.75)],
    [
        ("billing-bot", "list_mail", START_MS + 189, "success", 1, 1.0),
        (*MONEY, START_MS + 49, "approval", 1, 1.0),
        (*MONEY, START_MS + 77, "success", 2, 1.0),
        (*MONEY, START_MS + 105, "edit", 3, 0.666667),
        (*MONEY, START_MS + 133, "approval", 4, 0.75),
        (*MONEY, START_MS + 154, "failure", 5, 0.6),
        (*MONEY, START_MS + 266, "approval", 6, 0.666667),
        (*MONEY, START_MS + 287, "unknown", 7, 0.571429),
    ],
    [('["production@3/payments-over-limit"]', 6, 3, 1, 0, 1)],
    [(START_MS - START_MS % 86_400_000, 1)],
    [("policy", "billing-bot", "list_mail", 1, 0)],
    [("bob@acme", "run-1", "edited", EDITED, "no funds")],
]


def test_queries_of_the_cookbook_answer_alike_on_every_database(ask: Ask) -> None:
    assert len(TITLES) == len(QUESTIONS) == 12
    for title, text, expected in zip(TITLES, QUESTIONS, ANSWERS, strict=True):
        assert ask(text) == expected, title


@pytest.mark.postgres
def test_query_in_types_of_postgres_adds_up_json_by_day(postgres_url: str) -> None:
    answers = on_postgres(postgres_url)
    ask = next(answers)
    day = datetime.fromtimestamp(START_MS / 1000, UTC).replace(hour=0, minute=0, second=0)
    assert ask(OF_POSTGRES[1]) == [(day, "send_money", 50 + 4 * 98.7)]
    assert ask("SELECT arguments_json ->> 'note' FROM tool_calls WHERE call_id = 'edited'") == [
        ("\ufffdhalf",)
    ]
    (kind,) = ask("SELECT pg_typeof(at)::text FROM events LIMIT 1")
    assert kind == ("timestamp with time zone",)
    (late,) = ask("SELECT extract(epoch FROM max(at))::bigint - max(at_ms) / 1000 FROM events")
    assert late == (0,)


@pytest.mark.postgres
@pytest.mark.parametrize("table", [table for table in TABLES if table.time], ids=lambda table: table.name)
def test_condition_on_a_moment_uses_an_index_in_postgres(postgres_url: str, table: Table) -> None:
    moment = table.time.removesuffix("_ms")
    answers = on_postgres(f"{postgres_url}?options=-cenable_seqscan%3Doff")
    plan = next(answers)(f"EXPLAIN SELECT * FROM {table.name} WHERE {moment} > now() - interval '1 day'")
    assert f"{table.name}_by_moment" in str(plan)


@pytest.mark.parametrize("table", [table for table in TABLES if table.time], ids=lambda table: table.name)
def test_condition_on_a_time_uses_an_index_in_sqlite(tmp_path: Path, table: Table) -> None:
    answers = on_sqlite(tmp_path)
    ask = next(answers)
    whose = " AND ".join(f"{name} = 'x'" for name in ("tenant", "project") if name in table.names)
    condition = f"{whose} AND {table.time} > 1"
    (plan,) = ask(f"EXPLAIN QUERY PLAN SELECT * FROM {table.name} WHERE {condition}")
    assert f"{table.time}>?" in str(plan)
