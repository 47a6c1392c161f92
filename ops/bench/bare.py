"""The rebuild's floor: the same records decoded, written as rows with a position, and nothing else.

Records are read from Kafka first and that is not counted. Each becomes one row; batches are as large as the
projector's, each in one transaction with the positions.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from ops.bench.site import Site
from projections.projector import BATCH_RECORDS
from schemas.headers import read_event
from schemas.record import RawRecord
from schemas.topics import Topics

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE events (partition INTEGER, place INTEGER, event_id TEXT, kind TEXT, at_ms INTEGER, body TEXT,
                     PRIMARY KEY (partition, place)) WITHOUT ROWID;
CREATE TABLE positions (partition INTEGER PRIMARY KEY, place INTEGER, event_id TEXT);
"""
INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
TRACK = "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)"


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Events a second of bare decoding, rows and tracking."""
    records = await _read_all(Site(**job["site"]))
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        _write(Path(directory) / "bare.sqlite", records)
        return {"records": len(records), "rate": len(records) / (time.perf_counter() - began)}


async def _read_all(site: Site) -> list[RawRecord]:
    tail = Follower(KafkaSettings(site.bootstrap_servers, site.security), BULK)
    await tail.open()
    try:
        partitions = await tail.partitions(Topics(site.topic_prefix).executions)
        count = sum(bounds.end for bounds in (await tail.bounds(partitions)).values())
        tail.stand_at(dict.fromkeys(partitions, 0))
        found: list[RawRecord] = []
        while len(found) < count:
            for _, records in await tail.poll_on():
                found += records
        return found
    finally:
        await tail.close()


def _write(file: Path, records: list[RawRecord]) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.executescript(SCHEMA)
        for start in range(0, len(records), BATCH_RECORDS):
            rows = list(_rows(records[start : start + BATCH_RECORDS]))
            with database:
                database.executemany(INSERT, rows)
                database.executemany(TRACK, {row[0]: row[:3] for row in rows}.values())


def _rows(records: list[RawRecord]) -> Iterator[tuple[int, int, str, str, int, str]]:
    for raw in records:
        event = read_event(raw)
        body = event.body.model_dump_json()
        yield event.partition, event.offset, event.meta.event_id, event.type, event.meta.at_ms, body
