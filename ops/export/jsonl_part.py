"""A part of an export as lines of JSON, each with every column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ops.export.columns import COLUMNS, OF_EVENTS, Row
from ops.export.part_file import PartFile
from schemas.headers import rfc3339

_ENCODE = msgspec.json.Encoder().encode
_LINE = msgspec.defstruct("Line", [(column.name, Any) for column in COLUMNS])
_SOURCES = tuple(column.source for column in OF_EVENTS)


def line_of(row: Row) -> bytes:
    """A row as one line. Columns without a value are null, so that the first line shows all of them."""
    place = row.partition, row.offset, rfc3339(row.at_ms)
    labels = row[len(place) : -2]
    return _ENCODE(_LINE(*place, *labels, row.body.decode(), *map(row.fields.get, _SOURCES))) + b"\n"


class JsonlPart:
    """One file of lines.

    Attributes:
        waiting_bytes: always 0; what is not written yet is in the file's own small buffer.
    """

    waiting_bytes = 0

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made.
        """
        self._file = PartFile(path)

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        self._file.writelines(map(line_of, rows))

    def flush(self) -> None:
        """Hand the file's buffer to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Bring the file to the disk and close it."""
        self._file.complete()

    def abandon(self) -> None:
        """Close the file; what waits is not written."""
        self._file.give_up()
        self._file.close()
