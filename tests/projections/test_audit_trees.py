"""What grows into a tree, in both databases: which records have a leaf, and that batches and gaps change no root."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import msgspec

from projections.audit.tiles import Tiles
from projections.audit.trees import TreeKey, Trees, load_tree
from projections.batching import Batcher, Chunk
from projections.cache import RowCache
from projections.store.port import Position
from projections.store.urls import open_view
from projections.tables.audit import AUDIT_TILES, AUDIT_TREES
from projections.tables.log import SKIPPED_RECORDS
from schemas.audit import has_leaf, record_leaf, tenant_of
from schemas.merkle import root_and_paths
from schemas.record import RawRecord
from schemas.term import NO_CLAIM
from tests.projections.filling import TOPICS, Filler
from tests.projections.histories import LogBuilder, key_of, many_runs, policy_key, policy_published, started

KEY = key_of("run-1")


def root_of(filler: Filler, key: TreeKey) -> tuple[int, bytes]:
    """Size and root of a tree, by its rows alone."""
    tree = filler.store.load(AUDIT_TREES, [key])[0]

    def read(level: int, number: int) -> bytes:
        rows = filler.store.load(AUDIT_TILES, [(*key, level, number)])
        found: bytes = rows[0]["hashes"] if rows else b""
        return found

    return tree["size"], Tiles(read).root(tree["size"])


def expected(topic: Any, records: list[RawRecord]) -> tuple[int, bytes]:
    leaves = [record_leaf(topic, record) for record in records]
    return len(leaves), root_and_paths(leaves)[0]


def test_leaf_is_the_hash_of_the_records_bytes_as_documented() -> None:
    record = RawRecord(3, 70_000, 9, b"acme/main/run", b"\x00value", (("ce_id", b"e1"), ("other", b"")))
    preimage = msgspec.msgpack.decode(
        msgspec.msgpack.encode(
            [
                "placet.audit-leaf.v1",
                "executions",
                3,
                70_000,
                b"acme/main/run",
                [["ce_id", b"e1"], ["other", b""]],
                b"\x00value",
            ]
        )
    )
    packed = msgspec.msgpack.encode(preimage)
    assert record_leaf("executions", record) == hashlib.sha256(b"\x00" + packed).digest()
    assert record_leaf("executions", record._replace(timestamp_ms=1)) == record_leaf("executions", record)


def test_tree_holds_what_counts_and_nothing_else(filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    builder.append(KEY, [started()])
    zombie = builder.append(KEY, [started()], term=99)
    builder.alive(0)
    builder.append(key_of("run-2", tenant="other"), [started()])
    builder.claim(0, "w2", after=77)
    builder.claim(0, "w3")
    builder.append(KEY, [started()])
    records = builder.records[0]
    filler.fill(builder)
    assert root_of(filler, TreeKey("acme", "executions", 0)) == expected(
        "executions", [records[1], records[-1]]
    )
    assert root_of(filler, TreeKey("other", "executions", 0)) == expected("executions", [records[zombie + 2]])
    assert len(filler.rows(AUDIT_TREES)) == 2
    assert filler.rows(AUDIT_TREES)[0]["last_offset"] == len(records) - 1


def test_record_that_cannot_be_read_has_its_leaf_by_its_headers(filler: Filler) -> None:
    builder = LogBuilder(1).claim_all()
    builder.append(KEY, [started()])
    newer = builder.records[0][1]._replace(value=b"\x00\x00\x00\xff\xff of a newer version")
    builder.records[0][1] = newer
    builder.append_raw(0, b"no headers at all")
    filler.fill(builder)
    assert [row["reason"] for row in filler.rows(SKIPPED_RECORDS)] == ["unknown_schema", "malformed"]
    assert root_of(filler, TreeKey("acme", "executions", 0)) == expected("executions", [newer])


def test_definitions_have_trees_of_their_own(filler: Filler) -> None:
    definitions = LogBuilder(1).claim_all()
    definitions.append(policy_key("production"), [policy_published("production", 1)], partition=0)
    filler.fill(definitions=definitions)
    assert root_of(filler, TreeKey("acme", "definitions", 0)) == expected(
        "definitions", [definitions.records[0][1]]
    )


def test_batches_of_any_size_make_the_same_rows(filler: Filler, tmp_path: Any) -> None:
    builder = many_runs(LogBuilder(2).claim_all(), 60, seed=3)
    many_runs(builder, 20, seed=4, tenant="other")
    filler.fill(builder, step=7)
    once = Filler(open_view(f"sqlite:///{tmp_path}/once.db"))
    once.fill(builder, step=100_000)
    for table in (AUDIT_TREES, AUDIT_TILES):
        assert filler.rows(table) == once.rows(table)
    assert max(row["number"] for row in once.rows(AUDIT_TILES)) >= 1
    assert max(row["level"] for row in once.rows(AUDIT_TILES)) == 1
    once.store.close()
    for partition, records in enumerate(builder.records):
        mine = [r for r in records if tenant_of(r.key) == "acme"]
        assert root_of(filler, TreeKey("acme", "executions", partition)) == expected("executions", mine)


def test_tree_that_was_forgotten_goes_on_from_its_rows(filler: Filler) -> None:
    builder = many_runs(LogBuilder(1).claim_all(), 40, seed=3)
    many_runs(builder, 40, seed=4, tenant="other")
    trees = Trees(filler.store, capacity=1)
    batcher = Batcher(TOPICS, RowCache(filler.store), trees)
    at = Position(TOPICS.executions, 0, "t1")
    records = builder.records[0]
    for begin in range(0, len(records), 150):
        batch = batcher.batch([Chunk(at, records[begin : begin + 150])])
        filler.store.apply(batch)
        batcher.written()
        at = replace(batch.moves[0].after)
    for tenant in ("acme", "other"):
        mine = [r for r in records if tenant_of(r.key) == tenant]
        key = TreeKey(tenant, "executions", 0)
        assert root_of(filler, key) == expected("executions", mine)
        assert load_tree(filler.store, key).size == len(mine) > 256


def test_has_leaf_is_told_by_key_headers_and_claim_alone() -> None:
    builder = LogBuilder(1).claim_all()
    builder.append(KEY, [started()])
    claim, record = builder.records[0]
    assert has_leaf(record, 0)
    assert not has_leaf(record, 5)
    assert not has_leaf(record, NO_CLAIM)
    assert not has_leaf(claim, 0)
    assert not has_leaf(record._replace(headers=()), 0)
    assert not has_leaf(record._replace(key=b"no-slash"), 0)
    assert not has_leaf(record._replace(key=b"\xff/a/b"), 0)
