"""A command that a message suggests does what it says when it is copied into a shell, whatever paths are called."""

from __future__ import annotations

import io
import os
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from ops.config import load_config
from ops.demo.access import Access
from ops.demo.command import _introduce
from ops.errors import DataDirectoryInUseError, UsageError
from ops.locks import lock_directory

NAME = "my data; it's $HOME"


def _suggested(error: BaseException) -> list[str]:
    (command,) = re.findall(r"\((placet .*)\)", str(error))
    return shlex.split(command)


def test_stack_that_runs_is_stopped_by_what_is_suggested(tmp_path: Path) -> None:
    held = lock_directory(tmp_path / NAME)
    with pytest.raises(DataDirectoryInUseError) as told:
        lock_directory(tmp_path / NAME)
    os.close(held)
    assert _suggested(told.value) == ["placet", "down", "--data-dir", str(tmp_path / NAME)]


def test_stack_that_is_not_there_is_started_by_what_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        load_config(tmp_path / NAME / "placet.json")
    assert _suggested(told.value) == ["placet", "up", "--data-dir", str(tmp_path / NAME)]


def test_demo_says_a_line_that_another_terminal_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / NAME / "reviewer.token"
    _introduce(Access("http://127.0.0.1:1", {}, "r", "o", file), Console(file=io.StringIO()))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "export" in line]
    assert f"$(cat {shlex.quote(str(file))})" in line
