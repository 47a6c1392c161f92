"""The star as files: every table of the views whole, in both formats, replaced by each run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ops.export.errors import LinkedFolderError, OutputUnusableError
from ops.export.layout import STAR, Format
from ops.export.star import OF_VIEWS
from projections.queries.views import open_views
from schemas.topics import DAY_MS
from tests.ops.export.starred import starred, view_of
from tests.projections.histories import START_MS
from tests.projections.season import DAYS, people, season

NOW_MS = START_MS + DAYS * DAY_MS


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path}/views.sqlite"
    view_of(found, season(30), people())
    return found


def in_file(path: Path) -> list[tuple[Any, ...]]:
    if path.suffix == ".jsonl":
        return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT * FROM '{path}'").fetchall()


def in_views(url: str, name: str) -> list[tuple[Any, ...]]:
    views = open_views(url)
    try:
        (names,) = [offer.names for offer in OF_VIEWS if offer.name == name]
        columns = ", ".join(f'"{column}"' for column in names)
        return views.read_now(
            lambda now: [tuple(row) for row in now.execute(f"SELECT {columns} FROM {name}", ())]
        )[0]
    finally:
        views.close()


@pytest.mark.parametrize("form", Format)
def test_every_table_is_written_whole_as_the_views_have_it(tmp_path: Path, url: str, form: Format) -> None:
    counts = starred(url, tmp_path / "out", NOW_MS, form)
    assert sorted(os.listdir(tmp_path / "out" / STAR)) == sorted(f"{name}.{form}" for name in counts)
    for name, count in counts.items():
        rows = in_file(tmp_path / "out" / STAR / f"{name}.{form}")
        assert len(rows) == count
        if name != "trust_days":
            assert sorted(rows, key=repr) == sorted(in_views(url, name), key=repr)
    assert counts["tool_calls"] == 30
    assert counts["trust_days"] > 0
    assert (tmp_path / "out" / STAR / f"votes.{form}").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("form", Format)
def test_day_of_trust_is_a_date_for_what_reads_the_file(tmp_path: Path, url: str, form: Format) -> None:
    starred(url, tmp_path / "out", NOW_MS, form)
    with duckdb.connect() as connection:
        read = (
            f"SELECT typeof(day), epoch_ms(at_ms)::DATE = day FROM '{tmp_path}/out/{STAR}/trust_days.{form}'"
        )
        assert set(connection.execute(read).fetchall()) == {("DATE", True)}


def test_next_run_replaces_the_files_and_what_a_killed_one_left(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "out" / STAR
    starred(url, tmp_path / "out", NOW_MS)
    (folder / "_next-votes.parquet").write_bytes(b"half of a file")
    (folder / "mine.txt").write_text("left alone")
    view_of(url, season(40), people())
    counts = starred(url, tmp_path / "out", NOW_MS)
    assert len(in_file(folder / "tool_calls.parquet")) == counts["tool_calls"] == 40
    assert not list(folder.glob("_next-*"))
    assert (folder / "mine.txt").exists()


def test_link_in_the_place_of_the_folder_is_refused(tmp_path: Path, url: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / STAR).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LinkedFolderError, match="is a link: remove it"):
        starred(url, tmp_path / "out", NOW_MS)
    assert not os.listdir(tmp_path / "elsewhere")


def test_place_that_cannot_be_written_is_told_and_earlier_files_stay(tmp_path: Path, url: str) -> None:
    starred(url, tmp_path / "out", NOW_MS)
    before = (tmp_path / "out" / STAR / "executions.parquet").read_bytes()
    (tmp_path / "out" / STAR / "_next-votes.parquet").mkdir()
    with pytest.raises(OutputUnusableError, match="cannot be written"):
        starred(url, tmp_path / "out", NOW_MS)
    assert (tmp_path / "out" / STAR / "executions.parquet").read_bytes() == before
