"""Directories whose names are on the disk: a file that was synchronised is lost with the entry that names it."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk.

    Raises:
        OSError: it cannot be opened or written.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_directory(directory: Path) -> None:
    """Make a directory and all that are missing above it, for the owner alone, and bring their names to the disk.

    `Path.mkdir(mode=…, parents=True)` gives its mode to the last one only.

    Raises:
        OSError: one of them cannot be made.
    """
    if directory.is_dir():
        return
    make_private_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    sync_directory(directory.parent)
