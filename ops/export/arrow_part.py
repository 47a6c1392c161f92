"""A part of an export as Parquet, by Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ops.export.columns import COLUMNS, OF_EVENTS, OF_RECORDS, Kind, Row
from ops.export.part_file import PartFile

# Row groups that DuckDB and Spark read well; of large values fewer rows, so that memory stays flat.
GROUP_ROWS = 64 * 1024
GROUP_BYTES = 16 * 1024 * 1024
COMPRESSION = "zstd"
TYPES = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TRUTH: pa.bool_(),
    Kind.TIME: pa.timestamp("ms", tz="UTC"),
    Kind.TEXTS: pa.list_(pa.string()),
}
# Of the others, which have about as many values as rows, a dictionary would cost time and space.
WITH_DICTIONARY = [
    column.name
    for column in COLUMNS
    if column.name not in ("at", "offset", "body", "arguments", "output", "response", "digest")
    and column.kind is not Kind.TRUTH
    and (not column.name.endswith("_id") or column.name in ("execution_id", "rule_id"))
]
SCHEMA = pa.schema([pa.field(column.name, TYPES[column.kind]) for column in COLUMNS])
_OF_RECORDS = [TYPES[column.kind] for column in OF_RECORDS]
_OF_EVENTS = pa.struct([pa.field(column.source, TYPES[column.kind]) for column in OF_EVENTS])


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as Arrow columns of `SCHEMA`."""
    *heads, fields = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(heads, _OF_RECORDS, strict=True)]
    # One pass over each event in C++; a field that an event has not is null.
    arrays += pa.array(fields, _OF_EVENTS).flatten()
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class ParquetPart:
    """One file that grows by row groups; its footer is written by `close`.

    Attributes:
        waiting_bytes: what waits in memory for the next row group.
    """

    def __init__(self, path: Path) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made.
        """
        self.waiting_bytes = 0
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._file = PartFile(path)
        self._writer = pq.ParquetWriter(
            self._file, SCHEMA, compression=COMPRESSION, use_dictionary=WITH_DICTIONARY
        )

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows; a full row group is written."""
        batch = batch_of(rows)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self.waiting_bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self.waiting_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits as a row group."""
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=self._rows)
            self._waiting, self._rows, self.waiting_bytes = [], 0, 0

    def close(self) -> None:
        """Write the rest and the footer, and bring the file to the disk."""
        self.flush()
        self._writer.close()
        self._file.complete()

    def abandon(self) -> None:
        """Close the file; what waits is neither encoded nor written."""
        self._waiting, self._rows, self.waiting_bytes = [], 0, 0
        self._file.give_up()
        self._writer.close()
        self._file.close()
