"""Logs in memory for exports, and what is in a folder that was exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from log.memory.log import MemoryLog
from log.places import TopicPartition
from ops.export.folder import Folder
from ops.export.layout import Format
from ops.export.reading import ROUND_RECORDS, Work
from ops.export.run import Growth, Outcome, export, plan
from schemas.event_signatures import LogSignatures
from schemas.record import OutRecord
from schemas.topics import Topics
from tests.projections.histories import LogBuilder

TOPICS = Topics("placet")


def memory_log(partitions: int = 4) -> MemoryLog:
    return MemoryLog(TOPICS, partitions, lambda: 0)


def land(log: MemoryLog, builder: LogBuilder, topic: str = TOPICS.executions) -> None:
    """Append what a builder has and the log has not."""
    for partition, records in enumerate(builder.records):
        tp = TopicPartition(topic, partition)
        for raw in records[log.partition(tp).end :]:
            log.land(tp, [OutRecord(raw.key, raw.value, raw.headers)])


async def exported(
    log: MemoryLog,
    root: Path,
    form: Format | None = None,
    signatures: LogSignatures | None = None,
    round_records: int = ROUND_RECORDS,
) -> Outcome:
    """One export into a folder."""
    folder = Folder(root, form, verified=signatures is not None)
    try:
        stretches = await plan(log, folder)
        growth = Growth(folder, sum(one.offsets for one in stretches), lambda done, of: None)
        folder.complete()
        work = Work(folder.stage(), folder.state.format, signatures, round_records)
        await export(log, work, stretches, growth)
        folder.finish()
        assert growth.outcome.counts.newer or growth.done == growth.total
        return growth.outcome
    finally:
        folder.close()


def table(root: Path, what: str = "events") -> str:
    """The table of a folder, for DuckDB."""
    if list(root.glob("**/*.jsonl")):
        return f"read_json('{root}/{what}/**/*.jsonl', hive_partitioning = true)"
    return f"read_parquet('{root}/{what}/**/*.parquet', hive_partitioning = true)"


def asked(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(query).fetchall()


def places(root: Path) -> list[tuple[int, int]]:
    """Partition and offset of every event in a folder, in order."""
    found = asked(f'SELECT "partition", "offset" FROM {table(root)} ORDER BY ALL')
    return [(partition, offset) for partition, offset in found]


def expected_places(builder: LogBuilder) -> list[tuple[int, int]]:
    """Partition and offset of every record of a builder that is not about the log."""
    return [
        (raw.partition, raw.offset)
        for records in builder.records
        for raw in records
        if not raw.key.startswith(b"_log/")
    ]


def files(root: Path) -> dict[str, bytes]:
    """The files with events, by their places."""
    found = [*root.glob("events/**/*.*"), *root.glob("definitions/**/*.*")]
    return {str(path.relative_to(root)): path.read_bytes() for path in found if path.is_file()}


def state_of(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "_export.json").read_text())
    return found


def names(root: Path) -> list[str]:
    """What is directly in a folder."""
    return sorted(path.name for path in root.iterdir())
