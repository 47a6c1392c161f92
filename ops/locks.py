"""One stack per data directory: a lock that the kernel drops when its last holder ends."""

from __future__ import annotations

import fcntl
import os
import shlex
from contextlib import suppress
from pathlib import Path

from ops import process
from ops.errors import DataDirectoryInUseError
from ops.files import unusable


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
        os.close(descriptor)
        stop = shlex.join(["placet", "down", "--data-dir", str(directory)])
        raise DataDirectoryInUseError(
            f"The data directory {directory} is in use by another process: stop it ({stop}) or choose another"
            " --data-dir."
        ) from error
    # Left by the last holder.
    os.ftruncate(descriptor, 0)
    return descriptor


def name_holder(lock: int) -> None:
    """Write into a held lock file that this process supervises a stack, for `supervisor_of`."""
    pid = os.getpid()
    # Only messages use it: a full disk prevents nothing.
    with suppress(OSError):
        os.pwrite(lock, f"{pid} {process.started_ticks(pid)}".encode(), 0)


def supervisor_of(directory: Path) -> int | None:
    """The process that supervises a stack in a directory, by the lock and not by the status file."""
    try:
        with (directory / "lock").open("rb") as file:
            named = [int(word) for word in file.read().split()]
            # The lock is tried only if it names a living process: a stack that starts meanwhile would be refused.
            if len(named) != 2 or not process.is_same(*named):
                return None
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return named[0]
    except FileNotFoundError:
        return None
    # In a copy of the directory of a stack that runs.
    return None
