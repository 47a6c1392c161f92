"""One stack per data directory: a lock that the kernel drops when its last holder ends."""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ops import process
from ops.errors import DataDirectoryInUseError
from ops.files import unusable

HOLDER_MAX_BYTES = 200
# After it a start is refused, as it is by another stack: reading a very long log takes longer.
READER_LONGEST_S = 600.0
LOOK_AGAIN_S = 0.2


def lock_directory(directory: Path, name: str = "lock") -> int:
    """Take the directory for this process, and for every child that inherits the descriptor.

    Returns:
        The descriptor that holds the lock; closing it in all holders gives the directory back.

    Raises:
        DataDirectoryInUseError: Somebody else holds it.
        DataDirectoryUnusableError: It cannot be made, or nothing can be made in it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(error, directory) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        held_by = _named(os.pread(descriptor, HOLDER_MAX_BYTES, 0))
        os.close(descriptor)
        raise DataDirectoryInUseError(_in_use(directory, held_by)) from error
    # Left by the last holder.
    os.ftruncate(descriptor, 0)
    return descriptor


def name_holder(lock: int, command: str = "") -> None:
    """Write into a held lock file which process holds it.

    Args:
        lock: its descriptor.
        command: the command that reads the log of a stopped stack meanwhile; empty: it supervises a stack, see
            `supervisor_of`.
    """
    pid = os.getpid()
    # Only messages use it: a full disk prevents nothing.
    with suppress(OSError):
        os.pwrite(lock, f"{pid} {process.started_ticks(pid)} {command}".rstrip().encode(), 0)


def supervisor_of(directory: Path) -> int | None:
    """The process that supervises a stack in a directory, by the lock and not by the status file."""
    holder = _holder_of(directory)
    return None if holder is None or holder.command else holder.pid


def wait_for_reader(directory: Path, say: Callable[[str], None], longest_s: float = READER_LONGEST_S) -> None:
    """Wait while a command reads the log of the stopped stack in a directory: it ends by itself.

    Two Kafkas cannot use one directory, so that a stack cannot start beside it: a stack that crashed would stay down
    for good if its start failed because of an export that cron began meanwhile.

    Args:
        directory: the stack's.
        say: is told once who reads, and how to end that.
        longest_s: the time to wait; `lock_directory` says then who holds the directory.
    """
    until, told = time.monotonic() + longest_s, ""
    while (holder := _holder_of(directory)) is not None and holder.command:
        if time.monotonic() >= until:
            return
        found = f"{holder.command} (process {holder.pid}) reads the log of the stopped stack"
        if found != told:
            say(f"{found}: waiting for its end; kill {holder.pid} ends it now")
            told = found
        time.sleep(LOOK_AGAIN_S)


class _Holder(NamedTuple):
    """The process that a lock file names, and its command; without one it supervises a stack."""

    pid: int
    command: str


def _holder_of(directory: Path) -> _Holder | None:
    """The process that holds the lock of a directory, if it has named itself; None if nobody holds it."""
    try:
        with (directory / "lock").open("rb") as file:
            holder = _named(file.read(HOLDER_MAX_BYTES))
            # The lock is tried only if it names a living process: a stack that starts meanwhile would be refused.
            if holder is None:
                return None
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return holder
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    # In a copy of the directory of a stack that runs.
    return None


def _named(text: bytes) -> _Holder | None:
    """The living process that a lock file names; None if it names none."""
    words = text.decode(errors="replace").split(maxsplit=2)
    if len(words) < 2 or not all(word.isdecimal() for word in words[:2]):
        return None
    pid, started = int(words[0]), int(words[1])
    return _Holder(pid, "".join(words[2:])) if process.is_same(pid, started) else None


def _in_use(directory: Path, held_by: _Holder | None) -> str:
    if held_by is not None and held_by.command:
        return (
            f"The data directory {directory} is in use by {held_by.command} (process {held_by.pid}), which reads the"
            f" log of the stopped stack: wait until it has ended, or end it (kill {held_by.pid})."
        )
    stop = shlex.join(["placet", "down", "--data-dir", str(directory)])
    whose = "another process" if held_by is None else f"the stack of another process ({held_by.pid})"
    return (
        f"The data directory {directory} is in use by {whose}: stop it ({stop}) or choose another --data-dir."
    )
