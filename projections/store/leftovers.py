"""Leftovers of a killed rebuild beside a SQLite view, and how they are told from a rebuild that still runs.

A generation that is being built has, beside its file, a file of its name with `.building`, which is locked until the
generation is the live one or is gone. The kernel releases that lock when the process ends. The database file itself
is not locked: closing it a second time would release SQLite's own locks on it.
"""

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

BUILDING = ".building"
# The lock file is removed last: leftovers without one count as another version's.
_PARTS = ("", "-wal", "-shm", "-journal", ".link")
# A version that takes no lock may still be building a file that was written recently.
UNLOCKED_FOR_S = 600.0


class Claim:
    """Marks a generation as being built, until it is dropped."""

    def __init__(self, file: Path) -> None:
        """Take the claim before the generation's file is created.

        Raises:
            OSError: the disk is full, or the directory cannot be written.
        """
        self._path = file.with_name(file.name + BUILDING)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def drop(self) -> None:
        """Release the claim: the generation is now the live one, or it is gone."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def remove_generation(file: Path) -> None:
    """Remove a generation with all its files except its claim."""
    for suffix in _PARTS:
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def remove_leftovers(path: Path) -> list[str]:
    """Remove generations beside a view that no process is building and that are not the live one.

    Args:
        path: the configured path.

    Returns:
        The names of those that were removed. A generation that cannot be removed is logged and left.
    """
    removed = []
    for file in _generations(path):
        try:
            if _remove_if_left(file, path):
                removed.append(file.name)
        except OSError as error:
            logger.warning("%s was left behind by a killed rebuild and cannot be removed: %s", file, error)
    if removed:
        logger.info("removed what killed rebuilds had left behind: %s", ", ".join(removed))
    return removed


def _generations(path: Path) -> Iterator[Path]:
    suffixes = "|".join(re.escape(suffix) for suffix in (*_PARTS, BUILDING) if suffix)
    pattern = re.compile(rf"({re.escape(path.name)}\.[0-9a-f]{{12}})(?:{suffixes})?")
    if path.parent.is_dir():
        found = {match[1] for name in os.listdir(path.parent) if (match := pattern.fullmatch(name))}
        yield from (path.with_name(name) for name in sorted(found))


def _remove_if_left(file: Path, path: Path) -> bool:
    claim = file.with_name(file.name + BUILDING)
    try:
        descriptor = os.open(claim, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if _is_live(file, path) or not _is_at_rest(file):
            return False
        remove_generation(file)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Only the holder of the claim makes a generation the live one: checked here, the result cannot change.
        is_live = _is_live(file, path)
        if not is_live:
            remove_generation(file)
        claim.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return not is_live


def _is_live(file: Path, path: Path) -> bool:
    """Returns True if the path points to this file, even if the file is still to be created."""
    with suppress(OSError):
        if Path(os.readlink(path)).name == file.name:
            return True
    return path.exists() and file.exists() and path.samefile(file)


def _is_at_rest(file: Path) -> bool:
    """Returns True if none of a generation's files was written recently."""
    written = [0.0]
    for suffix in _PARTS:
        with suppress(FileNotFoundError):
            written.append(file.with_name(file.name + suffix).lstat().st_mtime)
    return time.time() - max(written) > UNLOCKED_FOR_S
