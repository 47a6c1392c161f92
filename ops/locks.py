"""One stack per data directory: a lock that the kernel drops when its last holder ends."""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path

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
    return descriptor
