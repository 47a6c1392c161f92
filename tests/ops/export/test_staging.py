"""The staging folder: only what an export made in it is removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.export import errors, staging
from ops.export.folder import Folder
from tests.ops.export.logs import expected_places, exported, land, memory_log, names, places, state_of
from tests.projections.histories import LogBuilder, many_runs

OWN = "executions-part-0-0.parquet"


def left_by_a_killed_run(root: Path) -> Path:
    """A folder whose last run made its staging folder, and nothing after."""
    folder = Folder(root, None, verified=False)
    try:
        folder.complete()
        return folder.stage()
    finally:
        folder.close()


def completed(root: Path) -> list[Path]:
    folder = Folder(root, None, verified=False)
    try:
        folder.complete()
        folder.finish()
        return folder.foreign
    finally:
        folder.close()


def with_state(root: Path, **changed: Any) -> None:
    (root / "_export.json").write_text(json.dumps(state_of(root) | changed))


def test_each_run_has_a_staging_folder_of_its_own_that_the_state_names(tmp_path: Path) -> None:
    first = left_by_a_killed_run(tmp_path)
    assert state_of(tmp_path)["staging"] == first.name
    second = left_by_a_killed_run(tmp_path)
    assert second != first
    assert (first.exists(), second.exists()) == (False, True)


def test_staging_folder_is_made_only_when_it_is_asked_for(tmp_path: Path) -> None:
    completed(tmp_path)
    assert names(tmp_path) == ["_export.json", "_export.lock"]


def test_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    path = left_by_a_killed_run(tmp_path)
    (path / OWN).write_bytes(b"half")
    assert completed(tmp_path) == []
    assert names(tmp_path) == ["_export.json", "_export.lock"]


def test_what_no_export_made_is_told_and_stays(tmp_path: Path) -> None:
    path = left_by_a_killed_run(tmp_path)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-thesis.txt"
    elsewhere.write_text("precious")
    (path / "a-folder" / "deep").mkdir(parents=True)
    (path / "my-work.csv").write_text("precious")
    (path / OWN).write_bytes(b"half")
    (path / "executions-part-0-1.parquet").symlink_to(elsewhere)
    (path / "executions-part-0-2.parquet").mkdir()
    foreign = completed(tmp_path)
    assert [one.name for one in foreign] == [
        "a-folder",
        "executions-part-0-1.parquet",
        "executions-part-0-2.parquet",
        "my-work.csv",
    ]
    assert names(path) == [one.name for one in foreign]
    assert (elsewhere.read_text(), (path / "my-work.csv").read_text()) == ("precious", "precious")
    assert completed(tmp_path) == []


async def test_export_goes_on_beside_what_is_foreign(tmp_path: Path) -> None:
    (left_by_a_killed_run(tmp_path) / "a-folder").mkdir()
    log, builder = memory_log(), many_runs(LogBuilder(4).claim_all(), 3)
    land(log, builder)
    await exported(log, tmp_path)
    assert places(tmp_path) == expected_places(builder)


def test_link_in_the_place_of_the_staging_folder_is_refused_and_what_it_names_stays(tmp_path: Path) -> None:
    root, documents = tmp_path / "out", tmp_path / "documents"
    documents.mkdir()
    (documents / OWN).write_text("precious")
    path = left_by_a_killed_run(root)
    path.rmdir()
    path.symlink_to(documents)
    with pytest.raises(errors.ForeignStagingError, match="is a link or a file"):
        Folder(root, None, verified=False)
    assert names(documents) == [OWN]
    with pytest.raises(NotADirectoryError):
        staging.remove(path)
    assert names(documents) == [OWN]


@pytest.mark.parametrize("name", ["../documents", "/tmp", "events", "_staging", "_staging-x", "."])
def test_state_that_names_another_folder_is_refused(tmp_path: Path, name: str) -> None:
    left_by_a_killed_run(tmp_path)
    with_state(tmp_path, staging=name)
    with pytest.raises(errors.StateDamagedError, match="is no name of a staging folder"):
        Folder(tmp_path, None, verified=False)


def test_folder_of_another_program_is_not_a_staging_folder(tmp_path: Path) -> None:
    completed(tmp_path)
    (tmp_path / "_staging").mkdir()
    (tmp_path / "_staging" / OWN).write_text("precious")
    completed(tmp_path)
    assert names(tmp_path / "_staging") == [OWN]
