"""Small files that other processes read while they are written: replaced whole, never half seen."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ops.errors import DataDirectoryUnusableError, DiskFullError, OpsError


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


def unusable(error: OSError) -> OpsError:
    """A file or directory that the operating system refuses, as an operator's error: which one, and why."""
    where = error.filename or "A file of the data directory"
    if error.errno == errno.ENOSPC:
        return DiskFullError(
            f"The disk that holds {where} is full: free space, or choose another --data-dir."
        )
    return DataDirectoryUnusableError(
        f"{where} cannot be made or written ({error.strerror or error}): mend that, or choose another --data-dir."
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object's content; None where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return dict(content)
