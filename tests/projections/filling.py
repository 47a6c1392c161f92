"""Put a log made by hand into a view, as the projector would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk, record_id_of
from projections.cache import RowCache
from projections.folds.rows import Row
from projections.store.port import Position, ViewStore
from projections.store.tables import VIEW_TABLES
from projections.tables.columns import Table
from schemas.record import RawRecord
from schemas.topics import Topics
from tests.projections.histories import LogBuilder

TOPICS = Topics()


@dataclass
class Filler:
    """Reads a log into a view from where the view stands."""

    store: ViewStore
    topics: Topics = TOPICS

    def fill(
        self,
        builder: LogBuilder | None = None,
        definitions: LogBuilder | None = None,
        *,
        step: int = 100,
        topic_id: str | None = "t1",
    ) -> None:
        """Apply everything that follows the view's positions, `step` records of a partition at a time.

        Args:
            builder: the executions' log.
            definitions: the definitions' log.
            step: how many records of a partition a batch takes at most.
            topic_id: what names the log; None for the id of its first record, as the projector does.
        """
        logs: dict[str, LogBuilder] = {}
        if builder is not None:
            logs[self.topics.executions] = builder
        if definitions is not None:
            logs[self.topics.definitions] = definitions
        batcher = Batcher(self.topics, RowCache(self.store), Trees(self.store))
        positions = {(at.topic, at.partition): at for at in self.store.positions()}
        while chunks := list(_chunks(logs, positions, step, topic_id)):
            batch = batcher.batch(chunks)
            self.store.apply(batch)
            batcher.written()
            positions |= {(move.after.topic, move.after.partition): move.after for move in batch.moves}

    def rows(self, table: Table) -> list[Row]:
        """All rows of a table by its key."""
        with self.store.snapshot() as moment:
            return [dict(zip(table.names, row, strict=True)) for row in moment.rows(table)]

    def everything(self) -> dict[str, list[Row]]:
        """All rows of all tables that a rebuild must reproduce."""
        return {table.name: self.rows(table) for table in VIEW_TABLES}


def _chunks(
    logs: Mapping[str, LogBuilder],
    positions: Mapping[tuple[str, int], Position],
    step: int,
    topic_id: str | None,
) -> Sequence[Chunk]:
    found: list[Chunk] = []
    for topic, builder in logs.items():
        for partition, records in enumerate(builder.records):
            name = record_id_of(records[0]) if topic_id is None and records else topic_id or ""
            at = positions.get((topic, partition), Position(topic, partition, name))
            following: list[RawRecord] = records[at.next_offset : at.next_offset + step]
            if following:
                found.append(Chunk(at, following))
    return found
