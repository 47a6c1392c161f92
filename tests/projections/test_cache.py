"""Rows at hand: forgotten ones come from the store again, and a fold never sees an old one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from log.places import TopicPartition
from projections.audit.trees import Trees
from projections.batching import Batcher, Chunk
from projections.cache import RowCache, Shelf
from projections.folds.rows import Row
from projections.projector import new_writer
from projections.store.port import Batch, Key, ViewStore
from projections.store.urls import open_view
from projections.tables.analytics import VOTES
from projections.tables.calls import TOOL_CALLS
from projections.tables.columns import Table
from projections.tables.holds import HOLDS
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.refusals import Refusal
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import LogBuilder, held, judged, key_of, many_runs, proposed, started


def test_get_of_a_row_untouched_while_many_others_were_reads_it_again() -> None:
    asked: list[tuple[list[int], int]] = []

    def load(addresses: Sequence[int], through: int) -> dict[int, Row]:
        asked.append((list(addresses), through))
        return {address: {"id": address} for address in addresses}

    shelf: Shelf[int, Row] = Shelf(load, capacity=2)
    for address in range(4):
        shelf.put(address, {"id": address})
        shelf.written()
    assert shelf.get(3) == {"id": 3}
    assert asked == []
    for address in range(4, 8):
        shelf.put(address, {"id": address})
        shelf.written()
    shelf.fetch([7, 0, 1])
    assert shelf.get(0) == {"id": 0}
    # The oldest row at hand was written by the fourth batch: those before are all that must be in the database.
    assert asked == [([0, 1], 3)]


def test_get_before_the_batch_is_written_sees_its_rows() -> None:
    shelf: Shelf[int, Row] = Shelf(lambda addresses, through: {})
    shelf.put(1, {"version": 1})
    shelf.written()
    shelf.put(1, {"version": 2})
    assert shelf.get(1) == {"version": 2}


@dataclass
class Counting:
    """A store that notes how often it is asked for rows, and for how many."""

    store: ViewStore
    asked: list[tuple[str, int]] = field(default_factory=list)

    def load(self, table: Table, keys: Sequence[Key], through: int | None = None) -> list[Row]:
        self.asked.append((table.name, len(keys)))
        return self.store.load(table, keys, through)

    def apply(self, batch: Batch) -> None:
        self.store.apply(batch)


def test_rows_that_a_batch_needs_are_asked_for_together(filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    calls = [proposed(f"call-{number}") for number in range(30)]
    for number, call in enumerate(calls):
        key = key_of(f"run-{number}")
        builder.append(key, [started()])
        builder.append(key, [call, judged(call), held(key, call)])
    earlier = len(builder.records[0])
    for number, call in enumerate(calls):
        key = key_of(f"run-{number}")
        hold_id = held(key, call).hold_id
        builder.append(key, [h.HoldClaimed(hold_id=hold_id, by="ann@acme", until_ms=9)])
        builder.append(key, [c.GrantRevoked(call_id=call.call_id, revision=1, reason="expired", by="")])
    store = Counting(filler.store)
    writer = new_writer(store, TOPICS, {})
    records = builder.records[0]
    at = TopicPartition(TOPICS.executions, 0)
    for piece in (records[:earlier], records[earlier:]):
        store.asked.clear()
        writer.batcher = Batcher(TOPICS, RowCache(store), Trees(store))
        writer.write([(at, piece)])
    folded = [name for name, _ in store.asked if not name.startswith("audit_")]
    assert sorted(folded) == ["executions", "holds", "tool_calls"]
    assert {row["status"] for row in filler.rows(TOOL_CALLS)} == {"expired"}


@pytest.mark.parametrize("capacity", [0, 3])
def test_view_is_the_same_however_little_is_kept_at_hand(
    filler: Filler, capacity: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = many_runs(LogBuilder(2).claim_all(), 10)
    writer = new_writer(filler.store, TOPICS, {}, batch_records=7)
    writer.batcher = Batcher(TOPICS, RowCache(filler.store, capacity), Trees(filler.store))
    polled = [
        (TopicPartition(TOPICS.executions, number), records) for number, records in enumerate(builder.records)
    ]
    writer.write(polled)
    expected = Filler(open_view(f"sqlite:///{tmp_path_factory.mktemp('expected')}/v.db"))
    expected.fill(builder)
    assert filler.everything() == expected.everything()
    expected.store.close()


@pytest.mark.parametrize("is_at_hand", [True, False])
def test_refusal_that_names_a_hold_of_another_run_takes_nothing_of_it(
    filler: Filler, is_at_hand: bool
) -> None:
    builder = LogBuilder(1).claim_all()
    call, key, other = proposed("c"), key_of("run-1"), key_of("run-2")
    for one in (key, other):
        builder.append(one, [started()])
    builder.append(key, [call, judged(call), held(key, call)])
    earlier = len(builder.records[0])
    hold_id = held(key, call).hold_id
    refused = h.DecisionRefused(
        hold_id=hold_id,
        decision="approve",
        digest="",
        code=Refusal.NOT_FOUND,
        detail="no such hold",
        winning_decision_id="",
        by="ann",
    )
    builder.append(other, [refused])
    # Both runs' events need the hold of this name, and only one of them has it.
    builder.append(key, [h.HoldClaimed(hold_id=hold_id, by="ann@acme", until_ms=9)])
    records, at = builder.records[0], TopicPartition(TOPICS.executions, 0)
    writer = new_writer(filler.store, TOPICS, {})
    for piece in [records] if is_at_hand else [records[:earlier], records[earlier:]]:
        writer.batcher = Batcher(TOPICS, RowCache(filler.store), Trees(filler.store))
        writer.write([(at, piece)])
    assert [(vote["call_id"], vote["agent"], vote["tool"]) for vote in filler.rows(VOTES)] == [(None,) * 3]
    assert [row["claimed_by"] for row in filler.rows(HOLDS)] == ["ann@acme"]


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
