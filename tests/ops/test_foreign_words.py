"""What a path, a log or an agent brings into the words of a command is printed as it stands, and steers nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ops.commands.stack import status
from ops.component import FAILED, Component
from ops.config import DataDir
from ops.replay import _print
from ops.status import Stack, write_stack
from projections.compare import Comparison, Difference, TableReport
from projections.rebuild import Outcome, Plan
from tests.house.sources import name, python_files

FOREIGN = "[/x] of [bold]runs[/bold] \x1b[31m"
SHOWN = "[/x] of [bold]runs[/bold] \\u{1b}[31m"
LONG = "free space on the disk that holds " + "/a/long/path" * 20


def test_status_prints_reasons_and_messages_as_they_stand(tmp_path: Path) -> None:
    parts = (Component("trust", None, FAILED, reason=f"it ended: {FOREIGN}"),)
    write_stack(DataDir(tmp_path), Stack(FAILED, components=parts, message=LONG))
    app = typer.Typer()
    app.command()(status)
    done = CliRunner().invoke(app, ["--data-dir", str(tmp_path)])
    assert (done.exit_code, done.exception.__class__) == (3, SystemExit)
    assert f"trust: it ended: {SHOWN}\n" in done.stdout
    assert f"{LONG}\n" in done.stdout


def test_replay_prints_keys_of_rows_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    row = Difference(("default", FOREIGN), "missing")
    found = Comparison({}, [TableReport("calls", 1, "d1", 1, [row])])
    _print(Outcome(1, 1.0, found, refused=FOREIGN), Plan("sqlite:///a", "sqlite:///b"))
    said = capsys.readouterr().out
    assert "('default', '[/x] of [bold]runs[/bold] \\x1b[31m') missing" in said
    assert f"not swapped: {SHOWN}\n" in said


def test_one_module_alone_makes_consoles() -> None:
    """Rich takes square brackets for markup, and fails where they do not match, unless it is told not to."""
    making = [
        name(path)
        for path in python_files()
        if re.search(r"Console\(|\(Console\)", path.read_text(encoding="utf-8"))
    ]
    assert [path for path in making if not path.startswith("tests/")] == ["sdk/src/placet/cli/screens.py"]
