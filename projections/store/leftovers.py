"""What a rebuild that was killed leaves beside a SQLite view, and how it is told from one that still runs.

Beside its file, a generation that is being built has a file of its name with `.building`, which is locked until the
generation is the live one or is gone. The kernel drops that lock with the process. The file of the database itself
is not locked: to close it a second time would drop SQLite's own locks on it.
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
# A lock file goes last: whatever is left without it counts as another version's.
_PARTS = ("", "-wal", "-shm", "-journal", ".link")
# A version that takes no lock may be building what was written lately.
UNLOCKED_FOR_S = 600.0


class Claim:
    """Says that a generation is being built, until it is dropped."""

    def __init__(self, file: Path) -> None:
        """Take the claim before the generation's file is made.

        Raises:
            OSError: there is no room for it, or the directory cannot be written.
        """
        self._path = file.with_name(file.name + BUILDING)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def drop(self) -> None:
        """The generation is the live one by now, or it is gone."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def remove_generation(file: Path) -> None:
    """Remove a generation with all that belongs to it but its claim."""
    for suffix in _PARTS:
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def remove_leftovers(path: Path) -> list[str]:
    """Remove generations beside a view that nobody builds and that are not the live one.

    Args:
        path: the configured path.

    Returns:
        The names of those that were removed. What cannot be removed is told in the log and left.
    """
    removed = []
    for file in _generations(path):
        try:
            if _remove_if_left(file, path):
                removed.append(file.name)
        except OSError as error:
            logger.warning("%s was left by a rebuild that was killed and cannot be removed: %s", file, error)
    if removed:
        logger.info("removed what rebuilds that were killed had left: %s", ", ".join(removed))
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
        # Only whoever holds the claim makes a generation the live one: asked now, the answer stays.
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
    """Whether the path means this file, also where the file is still to be made."""
    with suppress(OSError):
        if Path(os.readlink(path)).name == file.name:
            return True
    return path.exists() and file.exists() and path.samefile(file)


def _is_at_rest(file: Path) -> bool:
    """Whether nothing of a generation was written lately."""
    written = [0.0]
    for suffix in _PARTS:
        with suppress(FileNotFoundError):
            written.append(file.with_name(file.name + suffix).lstat().st_mtime)
    return time.time() - max(written) > UNLOCKED_FOR_S
