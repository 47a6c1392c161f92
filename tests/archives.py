"""Unpacking archives that tests bring or fetch."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, into: Path) -> None:
    """Unpack a tar archive.

    Python 3.11.2, which Debian 12 has, takes no filter for members; those after it warn where none is given.
    """
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(into, filter="data")
        else:
            tar.extractall(into)
