from __future__ import annotations

import os
from pathlib import Path

import pytest

from host.directories import make_private_directory, sync_directory


def test_every_directory_that_is_made_is_the_owners_alone_and_its_name_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, was = [], os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        was(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    make_private_directory(made[-1])
    assert {oct(path.stat().st_mode & 0o777) for path in made} == {"0o700"}
    assert synced == [path.parent for path in made]
    make_private_directory(made[-1])
    assert len(synced) == 3


def test_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(FileExistsError):
        make_private_directory(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        sync_directory(tmp_path / "a")
