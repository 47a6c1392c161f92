"""The staging folder of a run: its random name is in the state before it is made, so the next run knows it again.

Nothing but what an export made is ever removed, and no link is followed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from ops.export.errors import ForeignStagingError
from ops.export.layout import STAGING, is_staged_name

_NAME = re.compile(rf"{STAGING}-[0-9a-f]{{16}}")


def new_name() -> str:
    """A name that no other run has."""
    return f"{STAGING}-{secrets.token_hex(8)}"


def is_name(text: str) -> bool:
    """Returns True if `new_name` could have given this name."""
    return _NAME.fullmatch(text) is not None


def check(path: Path) -> None:
    """Check that a staging folder is a folder, or gone.

    Raises:
        ForeignStagingError: it is a link or a file.
        OSError: it cannot be looked at.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise ForeignStagingError(path)


def remove(path: Path) -> list[Path]:
    """Remove the files of an export in a staging folder, and the folder if that was all.

    Returns:
        What else is in it, which stays.

    Raises:
        OSError: it is no folder, or cannot be changed.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        foreign = [name for name in sorted(os.listdir(folder)) if not _is_removed(name, folder)]
    finally:
        os.close(folder)
    if not foreign:
        path.rmdir()
    return [path / name for name in foreign]


def _is_removed(name: str, folder: int) -> bool:
    if not is_staged_name(name):
        return False
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True
