"""docs/export.md: its queries as they stand on the page, and its table of columns."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest

from ops.export.columns import COLUMNS
from ops.export.layout import Format
from schemas.topics import DAY_MS
from tests.house.sources import ROOT
from tests.ops.export.logs import exported, land, memory_log
from tests.projections.histories import START_MS, LogBuilder, key_of, started
from tests.projections.story import story

PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql duckdb\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
DAY = date(2025, 10, 9)
RULE = "production@3/payments-over-limit"
ANSWERS: list[Any] = [
    [
        (DAY, "ToolCallDenied", 2),
        (DAY, "ToolCallFailed", 1),
        (DAY, "ToolCallOutcomeUnknown", 1),
        (DAY, "ToolCallProposed", 10),
        (DAY, "ToolCallReleased", 7),
        (DAY, "ToolCallSucceeded", 2),
    ],
    [
        ("ann@acme", "approve", 2, 7.0),
        ("ann@acme", "edit", 1, 7.0),
        ("ann@acme", "reject", 1, 7.0),
        ("bob@acme", "approve", 2, 10.5),
    ],
    [("decision", 3, 247.4), ("policy", 4, None)],
    [(RULE, 6, 0.62)],
    [("feedback", 7)],
]


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(round(one, 6) if isinstance(one, float) else one for one in row) for row in rows]


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which an export is where the page says."""
    log = memory_log(1)
    land(log, story())
    await exported(log, tmp_path / "placet-export", Format.PARQUET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_queries_of_the_page_answer(folder: Path) -> None:
    view, *questions = QUERIES
    with duckdb.connect() as connection:
        connection.execute(view)
        answers = [plain(connection.execute(text).fetchall()) for text in questions]
    assert answers == ANSWERS


async def test_lines_are_read_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = memory_log(1)
    land(log, story())
    await exported(log, tmp_path / "placet-export", Format.JSONL)
    monkeypatch.chdir(tmp_path)
    (read,) = re.findall(r"`(read_json\(.*?\))`", PAGE)
    with duckdb.connect() as connection:
        kinds = dict(
            connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {read})").fetchall()
        )
    assert (kinds["event_id"], kinds["body"], kinds["day"]) == ("UUID", "VARCHAR", "DATE")
    assert {column.name for column in COLUMNS} <= kinds.keys()


async def test_lines_are_read_as_the_page_says_if_the_last_of_many_files_has_the_first_word_of_a_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = memory_log(1)
    builder = LogBuilder(1).claim_all()
    for day in range(40):
        builder.now_ms = START_MS + day * DAY_MS
        command = "placet:timer:1" if day == 39 else str(UUID(int=day))
        builder.append(key_of(f"run-{day}"), [started()], command_id=command)
    land(log, builder)
    await exported(log, tmp_path / "placet-export", Format.JSONL)
    monkeypatch.chdir(tmp_path)
    (read,) = re.findall(r"`(read_json\(.*?\))`", PAGE)
    with duckdb.connect() as connection:
        query = f"SELECT count(DISTINCT command_id), count(DISTINCT day) FROM {read}"
        found = connection.execute(query).fetchone()
    # DuckDB itself looks at 32 files.
    assert found == (40, 40)


def test_page_lists_every_column() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(column.name, column.kind.value, column.meaning) for column in COLUMNS]
