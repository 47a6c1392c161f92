"""Child processes that never outlive their parent, and the end of one: asked first, killed after a while."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

PACKAGE_ROOT = Path(__file__).resolve().parent.parent
PR_SET_PDEATHSIG = 1
# What asks one of our processes to end.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# As in gateway/vault/wrapping.py, which this small module does not load.
MASTER_VARIABLE = "PLACET_VAULT_MASTER_KEY"
_LIBC = ctypes.CDLL(None, use_errno=True)


def spawn(
    command: Sequence[str],
    log: Path | int | None = None,
    environ: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
    tell_pid: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, killed with its parent; its output is appended to `log`.

    The death signal follows the thread that spawned: call it from one that lives as long as the child may.

    Args:
        command: Program and arguments.
        log: The file that takes standard output and error; its directory is made. A number is an open
            descriptor. None leaves them the parent's.
        environ: The child's environment; the parent's by default, without what is the gateway's alone.
        pass_fds: File descriptors that stay open in the child.
        cwd: Its working directory; the parent's by default.
        tell_pid: A descriptor that gets the child's id before its program runs.
    """
    parent = os.getpid()
    with _opened(log) as output:
        return subprocess.Popen(  # noqa: S603 - the command is built by this program
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            env=without_master_key(os.environ) if environ is None else dict(environ),
            pass_fds=tuple(pass_fds),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: _before_program(parent, tell_pid),
        )


def _opened(log: Path | int | None) -> AbstractContextManager[BinaryIO | int | None]:
    if not isinstance(log, Path):
        return nullcontext(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def without_master_key(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without the vault's master key."""
    return {name: value for name, value in environ.items() if name != MASTER_VARIABLE}


def stop(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """Ask the child to end (SIGTERM), and kill it when it has not within `grace_s`.

    Returns:
        Its exit code; negative for a signal.
    """
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs (a zombie does not)."""
    stat = _stat(pid)
    return bool(stat) and stat[0] not in ("Z", "X")


def started_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where there is none (proc(5), field 22)."""
    stat = _stat(pid)
    return int(stat[19]) if stat else 0


def is_same(pid: int | None, started: int) -> bool:
    """Whether the process that had this id at that start still runs."""
    return pid is not None and is_alive(pid) and started_ticks(pid) == started


def is_frozen(pid: int) -> bool:
    """True if a process was stopped (SIGSTOP, a debugger): it lives and does nothing (proc(5), state T or t)."""
    stat = _stat(pid)
    return bool(stat) and stat[0] in ("T", "t")


def living_in_group(group: int) -> list[int]:
    """The processes of a process group that run (a zombie does not)."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    found = ((pid, _stat(pid)) for pid in pids)
    return [pid for pid, stat in found if stat and stat[0] not in ("Z", "X") and int(stat[2]) == group]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _before_program(parent: int, tell_pid: int | None) -> None:
    die_with(parent)
    if tell_pid is not None:
        os.write(tell_pid, str(os.getpid()).encode())


def die_with(parent: int) -> None:
    """Let the kernel kill this process as soon as its parent, or the thread of it that started this one, has ended.

    Args:
        parent: the parent's process id; if it has ended already, this process is killed at once.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
