"""A file that others read is replaced whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ops.errors import DataDirectoryInUseError
from ops.files import read_json, write_json, write_text
from ops.locks import lock_directory


def test_write_text_sets_the_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "made" / "admin.token"
    write_text(path, "first", mode=0o600)
    write_text(path, "second", mode=0o600)
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_write_text_that_fails_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_read_json_returns_what_was_written_and_none_without_a_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"pid": 1})
    assert read_json(tmp_path / "a.json") == {"pid": 1}
    assert read_json(tmp_path / "b.json") is None


def test_lock_directory_twice_is_refused_until_released(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    with pytest.raises(DataDirectoryInUseError, match="placet down --data-dir"):
        lock_directory(tmp_path)
    os.close(held)
    os.close(lock_directory(tmp_path))
