"""Small files that other processes read while they are written: replaced whole, never half seen."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from host.json_files import read_json_file
from ops.errors import DataDirectoryUnusableError, DiskFullError, OpsError, UsageError
from vitals.disks import FULL, shortage


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file's content in one step.

    Args:
        path: The file; its directory is made.
        text: The new content, UTF-8.
        mode: Permission bits of the new file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def unusable(error: OSError, root: Path) -> OpsError:
    """What the operating system refuses, as an operator's error: of which file or directory, and why.

    Args:
        error: it names a file, or nothing where a file that was open already is refused something.
        root: the data directory that the work was for.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or (not error.filename and is_full(root)):
        return DiskFullError(
            f"The disk that holds {error.filename or root} is full: free space, or choose another --data-dir."
        )
    why = error.strerror or error
    # A file that takes another's place has a name for that moment only.
    named = error.filename2 or error.filename
    if not named:
        return OpsError(f"The operating system refused a call ({why}): see the logs in {root / 'logs'}.")
    return DataDirectoryUnusableError(
        f"{named} cannot be created or written ({why}): fix that, or choose another --data-dir."
    )


def is_full(path: Path) -> bool:
    """Whether the disk that holds a path, or will hold it, takes nothing more."""
    return shortage(path) == FULL


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object's content; None where there is no such file.

    Raises:
        UsageError: The file is damaged, or cannot be read.
    """
    try:
        return dict(read_json_file(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        # The file may be whole: rights, too many open files, a disk that fails.
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> UsageError:
    """The error for a damaged file that `placet up` creates again if it is missing."""
    return UsageError(
        f"{path} cannot be read ({why}): remove it or fix it; placet up creates it if it is missing."
    )
