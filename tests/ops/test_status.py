"""What is told of a stack is what is true: a dead supervisor's last word is not believed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ops import process
from ops.component import BACKING_OFF, DEGRADED, FAILED, KAFKA, READY, STARTING, STOPPED, Component
from ops.config import DataDir
from ops.daemon import stop_stack
from ops.errors import OpsError
from ops.files import write_json
from ops.locks import lock_directory, name_holder, supervisor_of
from ops.status import Stack, as_protocol, read_stack, unnamed_supervisor, unwritable, write_stack

OWN = os.getpid()
# Beyond the largest process id that Linux gives out.
NOBODY = 2**22 + 1


@pytest.fixture
def directory(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


@pytest.fixture
def stack() -> Stack:
    return Stack(
        state=READY,
        pid=OWN,
        started=process.started_ticks(OWN),
        url="http://127.0.0.1:8000",
        bootstrap_servers="127.0.0.1:9092",
        components=(Component(KAFKA, OWN, READY, "127.0.0.1:9092"), Component("decider", OWN, READY)),
    )


def test_read_stack_where_none_ever_ran_is_stopped(directory: DataDir) -> None:
    assert read_stack(directory) == Stack(STOPPED)


def test_read_stack_role_state_comes_from_its_own_file(directory: DataDir, stack: Stack) -> None:
    write_stack(directory, stack)
    assert [part.state for part in read_stack(directory).components] == [READY, STARTING]
    write_json(directory.status("decider"), {"pid": OWN, "state": "ready", "address": None})
    assert [part.state for part in read_stack(directory).components] == [READY, READY]


def test_read_stack_dead_component_is_stopped_or_restarting(directory: DataDir, stack: Stack) -> None:
    dead = (Component("decider", NOBODY, READY), Component("trust", None, BACKING_OFF, None, 3))
    write_stack(directory, replace(stack, components=dead))
    states = [(part.pid, part.state, part.restarts) for part in read_stack(directory).components]
    assert states == [(None, STOPPED, 0), (None, BACKING_OFF, 3)]


def test_read_stack_in_a_copy_made_while_it_ran_is_stopped_there(stack: Stack, tmp_path: Path) -> None:
    original, copy = DataDir(tmp_path / "original"), DataDir(tmp_path / "copy")
    original.state.parent.mkdir(parents=True)
    write_stack(original, stack)
    shutil.copytree(original.root, copy.root)
    assert read_stack(copy).state == STOPPED
    assert stop_stack(copy) is False, "the supervisor of the original is let alone"
    original.root.rename(tmp_path / "moved")
    assert read_stack(DataDir(tmp_path / "moved")).pid == OWN


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut", "deep"])
def test_stack_whose_configuration_was_damaged_is_looked_at_and_stopped(
    directory: DataDir, stack: Stack, text: str
) -> None:
    directory.config.write_text(text)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as supervisor:
        started = process.started_ticks(supervisor.pid)
        write_stack(directory, replace(stack, pid=supervisor.pid, started=started))
        assert read_stack(directory).pid == supervisor.pid
        ended = threading.Thread(target=supervisor.wait)
        ended.start()
        assert stop_stack(directory) is True
        ended.join(30)


def test_stack_that_ends_by_the_first_of_its_two_signals_is_stopped(
    directory: DataDir, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill, sent = os.kill, list[int]()

    def killing(pid: int, number: int) -> None:
        sent.append(number)
        kill(pid, number)
        supervisor.wait()

    monkeypatch.setattr("ops.daemon.os.kill", killing)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as supervisor:
        started = process.started_ticks(supervisor.pid)
        write_stack(directory, replace(stack, pid=supervisor.pid, started=started))
        assert stop_stack(directory) is True
    assert sent == [signal.SIGTERM, signal.SIGCONT]


def test_read_stack_names_the_part_in_trouble_beside_what_happened_to_another(
    directory: DataDir, stack: Stack
) -> None:
    write_stack(directory, replace(stack, message="gateway ended (signal 9)"))
    told = read_stack(directory)
    assert (told.state, told.message) == (DEGRADED, "decider is starting; gateway ended (signal 9)")


@pytest.mark.parametrize("lie", [{"pid": NOBODY}, {"started": 1}], ids=["dead", "reused id"])
def test_read_stack_without_its_supervisor_is_stopped(
    directory: DataDir, stack: Stack, lie: dict[str, int]
) -> None:
    write_stack(directory, replace(stack, **lie))  # type: ignore[arg-type]
    seen = read_stack(directory)
    assert seen.state == STOPPED
    assert {part.state for part in seen.components} == {STOPPED}


@pytest.mark.parametrize("text", [None, "zz", "[]", '{"state": "ready"}'])
def test_running_supervisor_that_the_status_file_does_not_name_is_named(
    directory: DataDir, text: str | None
) -> None:
    lock = lock_directory(directory.root)
    name_holder(lock)
    if text is not None:
        directory.state.parent.mkdir()
        directory.state.write_text(text)

    with pytest.raises(OpsError, match=f"`kill {OWN}`"):
        stop_stack(directory)
    os.close(lock)

    if text is None:
        assert read_stack(directory) == Stack(STOPPED)
        assert not stop_stack(directory)
    else:
        with pytest.raises(OpsError, match="remove it or fix it") as damaged:
            stop_stack(directory)
        assert "kill" not in str(damaged.value)


def test_copy_of_the_directory_of_a_running_stack_has_no_supervisor(
    directory: DataDir, tmp_path: Path
) -> None:
    lock = lock_directory(directory.root)
    name_holder(lock)
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(directory.root / "lock", copy / "lock")
    assert (supervisor_of(directory.root), supervisor_of(copy)) == (OWN, None)
    os.close(lock)


def test_lock_of_a_supervisor_that_has_ended_is_not_tried(
    directory: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack that starts at that moment would find its directory in use."""
    (directory.root / "lock").write_text(f"{NOBODY} 1")
    monkeypatch.setattr(fcntl, "flock", lambda *_: pytest.fail("the lock was tried"))
    assert supervisor_of(directory.root) is None


def test_command_that_holds_the_directory_is_no_supervisor(directory: DataDir) -> None:
    earlier = lock_directory(directory.root)
    name_holder(earlier)
    os.close(earlier)
    lock = lock_directory(directory.root)
    assert (supervisor_of(directory.root), unnamed_supervisor(directory)) == (None, "")
    os.close(lock)


def test_read_stack_failure_keeps_its_message(directory: DataDir, stack: Stack) -> None:
    write_stack(directory, replace(stack, state=FAILED, pid=NOBODY, message="The disk is full.", exit_code=3))
    assert read_stack(directory).message == "The disk is full."


def test_as_protocol_holds_what_the_protocol_names(stack: Stack) -> None:
    answer = as_protocol(stack)
    assert {"url", "sign_in_url", "bootstrap_servers", "grpc_address", "components"} <= set(answer)
    assert {"name", "pid", "state", "address"} <= set(answer["components"][0])


READ_ONLY = """
import pathlib, subprocess, sys
from ops.config import DataDir
from ops.status import read_stack
root = sys.argv[1]
subprocess.run(["mount", "--bind", root, root], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", root], check=True)
told = read_stack(DataDir(pathlib.Path(root)))
print(told.state, told.message, sep="\\n")
"""


def test_read_stack_names_a_directory_that_became_read_only(directory: DataDir, stack: Stack) -> None:
    write_stack(directory, stack)
    assert unwritable(directory) == ""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, "--mount", sys.executable, "-c", READ_ONLY, str(directory.root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    state, message = done.stdout.splitlines()
    assert state == DEGRADED
    assert message.startswith(f"{directory.root} cannot be written (Read-only file system): make it writable")
    assert read_stack(directory).message == "decider is starting"


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES])
def test_read_stack_names_a_directory_that_takes_no_file(
    directory: DataDir, stack: Stack, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stack(directory, stack)

    def refuses(**_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("ops.status.tempfile.TemporaryFile", refuses)
    assert f"cannot be written ({os.strerror(code)})" in read_stack(directory).message


def test_read_stack_names_a_short_disk_beside_one_that_cannot_be_looked_at(
    directory: DataDir, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = directory.root / ("h" * 300)
    write_json(directory.config, {"audit_heads_dir": str(heads)})
    write_stack(directory, stack)
    monkeypatch.setattr("vitals.disks.LOW_BYTES", sys.maxsize)
    message = read_stack(directory).message
    assert f"The disk that holds {directory.root} is nearly full" in message
    assert f"The disk that holds {heads} cannot be examined (File name too long)." in message
