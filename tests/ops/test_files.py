"""A file that others read is replaced whole."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest

from ops.config import DataDir
from ops.errors import (
    DataDirectoryInUseError,
    DataDirectoryUnusableError,
    DiskFullError,
    OpsError,
    UsageError,
)
from ops.files import is_full, read_json, unusable, write_json, write_text
from ops.locks import lock_directory, name_holder, supervisor_of, wait_for_reader
from ops.status import read_stack
from vitals import disks


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


@pytest.mark.parametrize("content", ["", "{", "[1]", "3", "\udcff", "[" * 100_000])
def test_read_json_of_a_damaged_file_names_it_and_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=r"/a\.json cannot be read \(.*\): remove it or fix it"):
        read_json(path)


def test_read_json_of_what_cannot_be_opened_does_not_advise_to_remove_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory\.$"):
        read_json(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", '{"state": "ready", "components": [3]}'])
def test_status_of_a_damaged_state_is_a_sentence(tmp_path: Path, content: str) -> None:
    directory = DataDir(tmp_path)
    write_text(directory.state, content)
    with pytest.raises(UsageError, match=r"/run/stack\.json cannot be read"):
        read_stack(directory)


def test_lock_directory_twice_is_refused_until_released(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    with pytest.raises(DataDirectoryInUseError, match="placet down --data-dir"):
        lock_directory(tmp_path)
    os.close(held)
    os.close(lock_directory(tmp_path))


def test_lock_directory_that_a_command_holds_names_it_and_its_process(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    name_holder(held, "placet export")
    pid = os.getpid()
    with pytest.raises(
        DataDirectoryInUseError,
        match=rf"in use by placet export \(process {pid}\).*wait until it has ended, or end it \(kill {pid}\)",
    ) as told:
        lock_directory(tmp_path)
    os.close(held)
    assert "placet down" not in str(told.value)
    assert supervisor_of(tmp_path) is None


def test_start_waits_for_a_command_that_reads_and_says_for_whom(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    name_holder(held, "placet export")
    said: SimpleQueue[str] = SimpleQueue()
    waiting = Thread(target=wait_for_reader, args=(tmp_path, said.put), daemon=True)
    waiting.start()
    pid = os.getpid()
    told = said.get(timeout=60)
    assert told.startswith(f"placet export (process {pid}) reads the log of the stopped stack: waiting")
    assert f"kill {pid}" in told
    assert waiting.is_alive()

    os.close(held)
    waiting.join(60)
    assert not waiting.is_alive()
    assert said.empty()


def test_start_waits_neither_for_a_stack_nor_for_ever(tmp_path: Path) -> None:
    said: list[str] = []
    wait_for_reader(tmp_path / "none", said.append)
    held = lock_directory(tmp_path)
    name_holder(held)
    wait_for_reader(tmp_path, said.append)
    name_holder(held, "placet export")
    wait_for_reader(tmp_path, said.append, longest_s=0)
    os.close(held)
    # The process that named itself lives on, and holds nothing any more.
    wait_for_reader(tmp_path, said.append)
    assert said == []


def test_lock_directory_that_a_supervisor_holds_names_its_process_and_how_to_stop_it(tmp_path: Path) -> None:
    held = lock_directory(tmp_path)
    name_holder(held)
    with pytest.raises(
        DataDirectoryInUseError,
        match=rf"the stack of another process \({os.getpid()}\): stop it \(placet down",
    ):
        lock_directory(tmp_path)
    os.close(held)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            DiskFullError,
            "The disk that holds {root} is full",
        ),
        (OSError(errno.ENOSPC, "x", "/v/f"), DiskFullError, "The disk that holds /v/f is full"),
        (
            OSError(errno.EACCES, "Permission denied", "/v/f"),
            DataDirectoryUnusableError,
            "/v/f cannot be created",
        ),
        (
            OSError(errno.EISDIR, "Is a directory", "/v/.f.x1", None, "/v/f"),
            DataDirectoryUnusableError,
            "/v/f cannot be created or written (Is a directory)",
        ),
        (OSError(errno.EINVAL, "Invalid argument"), OpsError, "refused a call (Invalid argument)"),
    ],
)
def test_unusable_names_the_file_or_the_directory_and_no_file_where_there_was_none(
    tmp_path: Path, error: OSError, kind: type[OpsError], words: str
) -> None:
    found = unusable(error, tmp_path)
    assert type(found) is kind
    assert words.format(root=tmp_path) in str(found)


def test_is_full_asks_the_disk_that_will_hold_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_full(tmp_path / "not" / "yet")
    monkeypatch.setattr(disks, "FULL_BYTES", 2**80)
    assert is_full(tmp_path / "not" / "yet")
