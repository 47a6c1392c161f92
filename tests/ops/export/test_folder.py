"""Whose an export's folder is, and what is refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ops.export import errors
from ops.export.folder import Folder
from ops.export.layout import Format
from tests.ops.export.logs import TOPICS, exported, land, memory_log, names, state_of
from tests.projections.histories import LogBuilder, many_runs


async def an_export(root: Path) -> None:
    log = memory_log()
    land(log, many_runs(LogBuilder(4).claim_all(), 3))
    await exported(log, root)


def opened(root: Path, form: Format | None = None, *, verified: bool = False) -> Folder:
    return Folder(root, form, verified=verified)


def below(root: Path) -> list[Path]:
    return list(root.rglob("*"))


async def test_all_files_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        await an_export(tmp_path / "a" / "b")
    finally:
        os.umask(umask)
    found = below(tmp_path)
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_file()} == {"0o600"}
    assert {oct(path.stat().st_mode & 0o777) for path in found if path.is_dir()} == {"0o700"}
    assert len([path for path in found if path.is_dir()]) == 5


async def test_name_of_every_new_folder_and_file_is_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, was = set(), os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        was(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    await an_export(tmp_path / "a" / "b")
    holding = {path.parent for path in below(tmp_path / "a") if path.name != "_export.lock"}
    assert {tmp_path, *holding} <= synced
    assert any(path.name.startswith("_staging-") for path in synced)


def test_second_export_at_the_same_time_is_refused(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(errors.FolderInUseError, match="wait for its end"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    before = tmp_path.stat().st_mtime_ns
    with pytest.raises(errors.ForeignFolderError, match=r"is not empty and has no _export\.json"):
        opened(tmp_path)
    assert names(tmp_path) == ["mine.txt"]
    assert tmp_path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "others", [["_staging"], ["_export.json.next"], ["_export.lock", "_staging"], [".hidden"]]
)
def test_only_what_an_export_makes_before_its_state_may_be_in_a_new_folder(
    tmp_path: Path, others: list[str]
) -> None:
    for name in others:
        (tmp_path / name).write_text("mine")
    with pytest.raises(errors.ForeignFolderError):
        opened(tmp_path)
    assert [(tmp_path / name).read_text() for name in others] == ["mine"] * len(others)
    assert names(tmp_path) == sorted(others)


async def test_export_that_was_killed_before_its_first_state_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "_export.lock").write_bytes(b"")
    (tmp_path / "_export.json.next").write_bytes(b'{"version"')
    await an_export(tmp_path)
    assert names(tmp_path) == ["_export.json", "_export.lock", "events"]


async def test_folder_that_is_refused_is_left_as_it_is(tmp_path: Path) -> None:
    log = memory_log()
    land(log, many_runs(LogBuilder(4).claim_all(), 3))
    await exported(log, tmp_path)
    (tmp_path / "_export.lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, *below(tmp_path))}
    with pytest.raises(errors.OtherFormatError):
        opened(tmp_path, Format.JSONL)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path, *below(tmp_path))} == before
    log.recreate(TOPICS.executions)
    with pytest.raises(errors.OtherLogError):
        await exported(log, tmp_path)
    (tmp_path / "_export.lock").unlink()
    assert {tmp_path, *below(tmp_path)} == set(before)


async def test_folder_whose_state_is_lost_is_refused(tmp_path: Path) -> None:
    await an_export(tmp_path)
    (tmp_path / "_export.json").unlink()
    with pytest.raises(errors.ForeignFolderError, match="empty folder"):
        opened(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "x"}', "\xff"])
async def test_damaged_state_is_refused(tmp_path: Path, text: str) -> None:
    await an_export(tmp_path)
    (tmp_path / "_export.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(errors.StateDamagedError, match="export into another folder"):
        opened(tmp_path)


async def test_state_of_another_version_is_refused(tmp_path: Path) -> None:
    await an_export(tmp_path)
    path = tmp_path / "_export.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(errors.OtherFormatError, match="has files of version 2, and 1 was asked for"):
        opened(tmp_path)


async def test_folder_of_records_that_were_checked_otherwise_is_refused(tmp_path: Path) -> None:
    await an_export(tmp_path)
    with pytest.raises(errors.OtherFormatError, match="not verified by signatures, and verified by their"):
        opened(tmp_path, verified=True)


async def test_committed_file_that_is_gone_before_it_is_in_its_place_is_told(tmp_path: Path) -> None:
    await an_export(tmp_path)
    path = tmp_path / "_export.json"
    move = '["executions-part-0-0.parquet", "events/tenant_key=acme/day=2025-10-09/part-0-0.parquet"]'
    path.write_text(path.read_text().replace('"moves": []', f'"moves": [{move}]'))
    with pytest.raises(errors.StateDamagedError, match=r"part-0-0\.parquet is gone"):
        opened(tmp_path).complete()


async def test_disk_that_is_full_is_one_sentence_and_the_next_export_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(
            errors.OutputUnusableError, match=r"No space left on device.* run the same command"
        ):
            await an_export(tmp_path)
    await an_export(tmp_path)
    assert state_of(tmp_path)["totals"]["rows"] > 0
