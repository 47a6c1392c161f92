from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from schemas.headers import epoch_ms, rfc3339
from vitals.heartbeat import SILENT_AFTER_S, observed_state
from vitals.heartbeat_file import read_heartbeat
from vitals.status_file import STALLED, read_status, write_status


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
    for text in ("", "{", "[]", "7", "[" * 100_000, '{"state": 1}', '{"pid": 1}'):
        path.write_text(text)
        assert read_status(path) is None, text


def _refuse_new_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)


def test_status_is_written_over_where_no_new_file_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "role.json"
    write_status(path, "ready", reason="x" * 300)
    _refuse_new_files(monkeypatch)

    write_status(path, "stalled", reason="the disk is full")

    status = read_status(path)
    assert status is not None
    assert (status["state"], status["reason"]) == ("stalled", "the disk is full")
    assert [file.name for file in tmp_path.iterdir()] == ["role.json"]


def test_word_in_a_file_that_can_only_be_touched_is_told_to_be_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decider.json"
    long_ago_ms = time.time_ns() // 1_000_000 - 60_000
    path.write_text(json.dumps({"pid": 7, "state": "ready", "at": rfc3339(long_ago_ms), "kafka_age_ms": 10}))
    _refuse_new_files(monkeypatch)
    monkeypatch.setattr(os, "pwrite", lambda *_: os.write(-1, b""))

    write_status(path, "ready")
    found = read_heartbeat(path)

    assert found is not None
    heartbeat, age_s = found
    assert age_s < SILENT_AFTER_S
    assert observed_state(heartbeat, age_s) == STALLED
    assert "cannot be written: its status is 60 s old" in heartbeat.reason
    assert heartbeat.kafka_age_ms is None
