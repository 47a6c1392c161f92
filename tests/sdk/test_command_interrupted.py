"""A Ctrl-C at any moment of the `placet` command, from its first line on, is 130 and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

# An interrupt as the terminal sends it, when a module is looked for the first time.
INTERRUPTS = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
"""
COMMAND = "from placet_command import main; main()"


def _run(tmp_path: Path, at: str, program: str = COMMAND) -> subprocess.CompletedProcess[bytes]:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPTED_AT": at}
    command = [sys.executable, "-c", program, "down", "--data-dir", str(tmp_path / "stack")]
    return subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False)


def test_console_script_begins_beside_the_package() -> None:
    (script,) = entry_points(group="console_scripts", name="placet")
    assert script.value == "placet_command:main"


@pytest.mark.parametrize(
    "at", ["placet", "asyncio", "typer", "placet.cli.app", "ops.commands.stack", "ops.daemon"]
)
def test_interrupt_while_the_command_is_read_in_leaves_without_a_word(tmp_path: Path, at: str) -> None:
    done = _run(tmp_path, at)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_interrupt_after_the_command_is_done_leaves_without_a_word(tmp_path: Path) -> None:
    late = "import atexit; atexit.register(lambda: __import__('stringprep'));" + COMMAND
    done = _run(tmp_path, "stringprep", late)
    assert (done.returncode, done.stderr) == (130, b"")
    assert done.stdout.startswith(b"Nothing runs in ")


def test_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);" + COMMAND
    done = _run(tmp_path, "typer", ignoring)
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupt_that_the_command_ignores_at_its_end_stays_ignored(tmp_path: Path) -> None:
    """As `placet up` does once it was told to stop."""
    ignoring = """
import atexit, signal
import placet.cli.app as app
def run():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return 0
app.run = run
atexit.register(lambda: __import__("stringprep"))
"""
    done = _run(tmp_path, "stringprep", ignoring + COMMAND)
    assert (done.returncode, done.stderr) == (0, b"")
