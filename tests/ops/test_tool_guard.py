"""The guard of a tool: it kills at the end of its pipe, also if it is asked to end, and not once it was released."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops import process
from ops.process import STOP_SIGNALS
from ops.tools import guard
from ops.tools.child import Launch, ToolProcess
from ops.tools.guard import Guard
from tests.servers.stack import wait_for

ENDS_WITHIN_S = 30.0


@pytest.fixture
def tool() -> Iterator[subprocess.Popen[bytes]]:
    running = process.spawn(("sleep", "1000"))
    yield running
    process.stop(running, ENDS_WITHIN_S)


def ready_guard() -> subprocess.Popen[bytes]:
    """The guard as a program that no longer starts: it has taken its signals."""
    running = subprocess.Popen((sys.executable, "-IS", guard.__file__), stdin=subprocess.PIPE)
    wait_for(lambda: _ignored(running.pid), lambda found: found.issuperset(STOP_SIGNALS))
    return running


def _ignored(pid: int) -> set[int]:
    """The signals that a process ignores (proc(5))."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    mask = int(next(line for line in lines if line.startswith("SigIgn")).split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_group_is_killed_at_the_end_of_the_pipe_and_no_signal_that_asks_ends_the_guard_before(
    tool: subprocess.Popen[bytes],
) -> None:
    running = ready_guard()
    for number in STOP_SIGNALS:
        running.send_signal(number)
    running.communicate(str(tool.pid).encode(), ENDS_WITHIN_S)
    assert running.returncode == 0
    assert tool.wait(ENDS_WITHIN_S) == -signal.SIGKILL


def test_supervisor_that_ended_before_the_tool_began_leaves_nothing_to_kill() -> None:
    running = ready_guard()
    running.communicate(b"", ENDS_WITHIN_S)
    assert running.returncode == 0


def test_group_that_has_ended_already_is_no_error() -> None:
    ended = process.spawn(("true",))
    ended.wait(ENDS_WITHIN_S)
    running = ready_guard()
    running.communicate(str(ended.pid).encode(), ENDS_WITHIN_S)
    assert running.returncode == 0


def test_released_guard_kills_nothing_also_if_it_is_frozen(tool: subprocess.Popen[bytes]) -> None:
    released = Guard(os.environ)
    os.write(released.descriptor, str(tool.pid).encode())
    os.kill(released.pid, signal.SIGSTOP)
    released.release()
    assert not process.is_alive(released.pid)
    assert tool.poll() is None


def test_command_that_cannot_be_started_leaves_no_guard(tmp_path: Path) -> None:
    before = _own_children()
    launch = Launch(("./not-there",), tmp_path, os.environ, 1)
    with pytest.raises(FileNotFoundError):
        ToolProcess(launch)
    assert _own_children() == before


def _own_children() -> set[str]:
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text("utf-8").split()}
