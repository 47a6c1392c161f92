"""The files of a round: by tenant and day, few open at once, small in memory."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ops.export import arrow_part, parts
from ops.export.arrow_part import ParquetPart
from ops.export.columns import COLUMNS, Row
from ops.export.errors import ArrowMissingError
from ops.export.layout import Format
from ops.export.parts import Move, Parts, new_part_of
from ops.export.rows import PartitionRows
from schemas.term import TermRule
from tests.projections.histories import LogBuilder, key_of, many_runs, started


def rows_of(builder: LogBuilder) -> list[Row]:
    return PartitionRows("placet.executions", "executions", TermRule()).read(builder.records[0])


def of_tenants(count: int) -> list[Row]:
    builder = LogBuilder(1).claim_all()
    for number in range(2 * count):
        builder.append(key_of("run", f"t{number % count}"), [started()], partition=0)
    return rows_of(builder)


def test_parts_are_named_by_tenant_day_and_first_record(tmp_path: Path) -> None:
    found = Parts(tmp_path, "executions", Format.PARQUET)
    found.add(of_tenants(2))
    day = "day=2025-10-09"
    assert found.finish() == [
        Move("executions-part-0-1.parquet", f"events/tenant_key=t0/{day}/part-0-1.parquet"),
        Move("executions-part-0-2.parquet", f"events/tenant_key=t1/{day}/part-0-2.parquet"),
    ]
    assert found.finish() == []


def test_more_tenants_than_files_may_be_open_get_further_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "OPEN_MAX", 2)
    found = Parts(tmp_path, "executions", Format.PARQUET)
    rows = of_tenants(3)
    found.add(rows[:3])
    found.add(rows[3:])
    moves = found.finish()
    assert len(moves) == 6
    read = [pq.read_table(tmp_path / move.staged).column("offset").to_pylist() for move in moves]
    assert sorted(offset for offsets in read for offset in offsets) == [row.offset for row in rows]


def test_row_groups_are_bounded_by_rows_and_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(many_runs(LogBuilder(1).claim_all(), 20))
    sizes = {}
    for name, limit in (("GROUP_ROWS", 50), ("GROUP_BYTES", 20_000), ("GROUP_ROWS", 10**9)):
        with monkeypatch.context() as patched:
            patched.setattr(arrow_part, name, limit)
            part = ParquetPart(tmp_path / f"{name}-{limit}.parquet")
            for start in range(0, len(rows), 10):
                part.add(rows[start : start + 10])
            part.close()
        found = pq.ParquetFile(tmp_path / f"{name}-{limit}.parquet").metadata
        assert found.num_rows == len(rows)
        sizes[limit] = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
    assert set(sizes[50][:-1]) == {50}
    assert 1 < max(sizes[20_000]) < len(rows)
    assert sizes[10**9] == [len(rows)]


def test_what_waits_in_all_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "WAITING_BYTES_MAX", 5_000)
    found = Parts(tmp_path, "executions", Format.PARQUET)
    for row in of_tenants(8):
        found.add([row])
        assert sum(part.waiting_bytes for part in found._open.values()) <= 5_000
    found.abandon()


@pytest.mark.parametrize("form", list(Format))
def test_round_that_is_given_up_writes_nothing_that_waited(tmp_path: Path, form: Format) -> None:
    found = Parts(tmp_path, "executions", form)
    found.add(rows_of(many_runs(LogBuilder(1).claim_all(), 3)))
    (path,) = tmp_path.iterdir()
    before = path.stat().st_size
    found.abandon()
    assert path.stat().st_size == before
    found.abandon()


@pytest.mark.parametrize("form", list(Format))
def test_round_on_a_full_disk_fails_once_and_can_be_given_up(tmp_path: Path, form: Format) -> None:
    found = Parts(tmp_path, "executions", form)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            _write_all(found, rows_of(many_runs(LogBuilder(1).claim_all(), 40)))
        found.abandon()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [1_000]


def _write_all(found: Parts, rows: list[Row]) -> None:
    found.add(rows)
    found.finish()


def test_every_file_has_the_same_schema(tmp_path: Path) -> None:
    found = Parts(tmp_path, "executions", Format.PARQUET)
    found.add(of_tenants(2))
    schemas = [pq.read_schema(tmp_path / move.staged) for move in found.finish()]
    assert schemas == [arrow_part.SCHEMA] * 2
    assert arrow_part.SCHEMA.names == [column.name for column in COLUMNS]


def test_without_arrow_parquet_is_refused_and_lines_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "ops.export.arrow_part")
    with pytest.raises(ArrowMissingError, match=r"placet-server\[export\].* --format jsonl"):
        new_part_of(Format.PARQUET)
    assert new_part_of(Format.JSONL) is not None
