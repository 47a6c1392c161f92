"""The verifier's trees and leaves, against pymerkle, the server's own making, and golden bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.audit.leaf import header_of, leaf_of
from placet.audit.merkle import GrowingTree, is_consistent, root_of_path, roots_at
from projections.audit.tiles import Tiles
from schemas.audit import record_leaf
from schemas.merkle import leaf_hash
from schemas.record import RawRecord

GOLDEN = Path(__file__).parents[1] / "golden" / "audit_leaves.json"
ENTRIES = [b"%d" % number for number in range(200)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
ORACLE = pymerkle.InmemoryTree(algorithm="sha256")
for entry in ENTRIES:
    ORACLE.append_entry(entry)
TILES = Tiles(lambda level, number: b"".join(LEAVES) if (level, number) == (0, 0) else b"")
SIZES = st.integers(1, len(LEAVES))


def shown(record: RawRecord, topic: str = "executions") -> dict[str, Any]:
    """A record as the interface shows it."""

    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": text(record.key),
        "headers": [[name, text(value)] for name, value in record.headers],
        "value": text(record.value),
    }


def test_roots_at_every_size_are_pymerkles() -> None:
    assert roots_at(LEAVES, range(1, len(LEAVES) + 1)) == {
        size: ORACLE.get_root(size) for size in range(1, len(LEAVES) + 1)
    }
    assert roots_at(LEAVES[:3], [2, 4]) == {2: ORACLE.get_root(2)}
    assert GrowingTree().root() == pymerkle.InmemoryTree(algorithm="sha256").get_root()


@given(SIZES, st.data())
def test_inclusion_is_accepted_as_proved_and_in_no_other_way(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    path, root = TILES.inclusion(index, size), ORACLE.get_root(size)
    assert root_of_path(LEAVES[index], index, size, path) == root
    assert root_of_path(LEAVES[index], index + 1, size, path) != root
    assert root_of_path(LEAVES[index - 1], index, size, path) != root or size == 1
    if path:
        assert root_of_path(LEAVES[index], index, size, path[:-1]) != root
        changed = data.draw(st.integers(0, len(path) - 1))
        assert (
            root_of_path(LEAVES[index], index, size, [*path[:changed], b"x" * 32, *path[changed + 1 :]])
            != root
        )


@given(SIZES, SIZES, st.data())
def test_consistency_is_accepted_between_pymerkles_roots_only(
    one: int, other: int, data: st.DataObject
) -> None:
    old, new = sorted((one, other))
    path = TILES.consistency(old, new)
    roots = ORACLE.get_root(old), ORACLE.get_root(new)
    assert is_consistent(old, roots[0], new, roots[1], path)
    if old == new:
        return
    assert not is_consistent(old, b"x" * 32, new, roots[1], path)
    assert not is_consistent(old, roots[0], new, b"x" * 32, path)
    assert not is_consistent(old, roots[0], new, roots[1], path[:-1])
    assert not is_consistent(old, roots[0], new, roots[1], [*path, b"x" * 32])
    changed = data.draw(st.integers(0, len(path) - 1))
    assert not is_consistent(old, roots[0], new, roots[1], [*path[:changed], b"x" * 32, *path[changed + 1 :]])


HEADERS = st.lists(st.tuples(st.text(max_size=40), st.binary(max_size=300)), max_size=20)
RECORDS = st.builds(
    RawRecord,
    st.integers(0, 70_000),
    st.integers(0, 2**63 - 1),
    st.just(0),
    st.binary(max_size=300),
    st.binary(max_size=70_000),
    HEADERS.map(tuple),
)


@given(RECORDS, st.sampled_from(["executions", "definitions"]))
def test_leaf_of_any_record_is_the_servers(record: RawRecord, topic: Any) -> None:
    assert leaf_of(shown(record, topic)) == record_leaf(topic, record)


@pytest.mark.parametrize("vector", json.loads(GOLDEN.read_text()), ids=lambda vector: vector["name"])
def test_golden_leaf_stays_as_it_is(vector: dict[str, Any]) -> None:
    assert leaf_of(vector["record"]).hex() == vector["leaf"]


def test_header_of_gives_the_text_or_none() -> None:
    record = shown(RawRecord(0, 0, 0, b"k", b"v", (("ce_id", b"e1"),)))
    assert header_of(record, "ce_id") == "e1"
    assert header_of(record, "ce_time") is None


@pytest.mark.parametrize("change", [{"offset": -1}, {"offset": 2**63}, {"key": "=="}, {"headers": [["a"]]}])
def test_leaf_of_no_record_is_refused(change: dict[str, Any]) -> None:
    record = shown(RawRecord(0, 0, 0, b"k", b"v", ())) | change
    with pytest.raises((ValueError, TypeError, KeyError)):
        leaf_of(record)
