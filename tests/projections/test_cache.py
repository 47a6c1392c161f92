"""Rows at hand: forgotten ones come from the store again, and a fold never sees an old one."""

from __future__ import annotations

import pytest

from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache, Shelf
from projections.folds.rows import Row
from projections.projector import new_writer
from projections.store.urls import open_view
from projections.tail_kafka import Partition
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import LogBuilder, many_runs


def test_get_of_a_row_untouched_while_many_others_were_reads_it_again() -> None:
    asked: list[int] = []

    def load(address: int) -> Row | None:
        asked.append(address)
        return {"id": address}

    shelf: Shelf[int] = Shelf(load, capacity=2)
    for address in range(4):
        shelf.put(address, {"id": address})
        shelf.written()
    assert shelf.get(3) == {"id": 3}
    assert asked == []
    for address in range(4, 8):
        shelf.put(address, {"id": address})
        shelf.written()
    assert shelf.get(0) == {"id": 0}
    assert asked == [0]


def test_get_before_the_batch_is_written_sees_its_rows() -> None:
    shelf: Shelf[int] = Shelf(lambda address: None)
    shelf.put(1, {"version": 1})
    shelf.written()
    shelf.put(1, {"version": 2})
    assert shelf.get(1) == {"version": 2}


@pytest.mark.parametrize("capacity", [0, 3])
def test_view_is_the_same_however_little_is_kept_at_hand(
    filler: Filler, capacity: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = many_runs(LogBuilder(2).claim_all(), 10)
    writer = new_writer(filler.store, TOPICS, {}, batch_records=7)
    writer.batcher = Batcher(TOPICS, RowCache(filler.store, capacity), Trees(filler.store))
    polled = [
        (Partition(TOPICS.executions, number), records) for number, records in enumerate(builder.records)
    ]
    writer.write(polled)
    expected = Filler(open_view(f"sqlite:///{tmp_path_factory.mktemp('expected')}/v.db"))
    expected.fill(builder)
    assert filler.everything() == expected.everything()
    expected.store.close()


def test_batch_of_nothing_new_touches_no_row(filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    filler.fill(builder)
    builder.alive(0)
    (position,) = filler.store.positions()
    batch = Batcher(TOPICS, RowCache(filler.store), Trees(filler.store)).batch(
        [Chunk(position, builder.records[0][1:])]
    )
    assert not any(batch.inserts.values())
    assert not any(batch.upserts.values())
