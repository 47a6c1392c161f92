"""A table of the star as Parquet, by Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ops.export.arrow_part import COMPRESSION, GROUP_BYTES, GROUP_ROWS
from ops.export.part_file import PartFile
from projections.tables.columns import Column, ColumnType, Offer, Reads

TYPES: dict[ColumnType, pa.DataType] = {
    "text": pa.string(),
    "int": pa.int64(),
    "real": pa.float64(),
    "bytes": pa.binary(),
}


class ParquetTable:
    """One file that grows by row groups; its footer is written by `close`."""

    def __init__(self, path: Path, offer: Offer[Any]) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made.
        """
        self._schema = pa.schema([pa.field(column.name, _type_of(column)) for column in offer.columns])
        self._waiting: list[pa.RecordBatch] = []
        self._file = PartFile(path)
        self._writer = pq.ParquetWriter(self._file, self._schema, compression=COMPRESSION)

    def add(self, rows: Sequence[Sequence[object]]) -> None:
        """Add rows; a full row group is written."""
        columns = zip(*rows, strict=True)
        arrays = [_array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        size = sum(batch.nbytes for batch in self._waiting)
        if size >= GROUP_BYTES or sum(batch.num_rows for batch in self._waiting) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the rest and the footer, and bring the file to the disk."""
        self._flush()
        self._writer.close()
        self._file.complete()

    def abandon(self) -> None:
        """Close the file; what waits is neither encoded nor written."""
        self._waiting = []
        self._file.give_up()
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        if self._waiting:
            rows = sum(batch.num_rows for batch in self._waiting)
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=rows)
            self._waiting = []


def _type_of(column: Column) -> pa.DataType:
    return pa.date32() if column.reads is Reads.DAY else TYPES[column.type]


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    # Arrow makes dates of text only in a cast.
    return pa.array(values, pa.string()).cast(kind) if pa.types.is_date(kind) else pa.array(values, kind)
