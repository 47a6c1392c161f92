"""A table of the star as lines of JSON, each with every column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ops.export.part_file import PartFile
from projections.tables.columns import Offer

_LINE = msgspec.json.Encoder().encode


class JsonlTable:
    """One file of lines."""

    def __init__(self, path: Path, offer: Offer[Any]) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made.
        """
        self._names = offer.names
        self._file = PartFile(path)

    def add(self, rows: Sequence[Sequence[object]]) -> None:
        """Add rows."""
        self._file.writelines(_LINE(dict(zip(self._names, row, strict=True))) + b"\n" for row in rows)

    def close(self) -> None:
        """Bring the file to the disk and close it."""
        self._file.complete()

    def abandon(self) -> None:
        """Close the file; what waits is not written."""
        self._file.give_up()
        self._file.close()
