from __future__ import annotations

import os
from pathlib import Path

from schemas.headers import epoch_ms
from schemas.status_file import read_status, write_status


def test_write_status_replaces_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "run" / "role.json"
    write_status(path, "starting")
    write_status(str(path), "ready", "http://x", behind=3)
    status = read_status(path)
    assert status is not None
    assert epoch_ms(status.pop("at")) > 0
    assert 0 <= status.pop("age_s") < 30
    assert status == {"state": "ready", "address": "http://x", "pid": os.getpid(), "behind": 3}
    assert [file.name for file in path.parent.iterdir()] == ["role.json"]


def test_write_status_without_a_path_writes_nothing(tmp_path: Path) -> None:
    write_status("", "ready")
    write_status(None, "ready")
    assert list(tmp_path.iterdir()) == []


def test_read_status_of_what_is_no_status_is_none(tmp_path: Path) -> None:
    path = tmp_path / "role.json"
    assert read_status(path) is None
    for text in ("", "{", "[]", "7", '{"state": 1}', '{"pid": 1}'):
        path.write_text(text)
        assert read_status(path) is None, text
