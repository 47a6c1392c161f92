"""Roots and proofs made of tiles, against pymerkle, and a naive reading of RFC 6962 where that takes too long."""

from __future__ import annotations

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.audit.tiles import HASH_BYTES, WIDTH, Tiles, TreeDamaged, reduced
from schemas.merkle import leaf_hash, node_hash, root_of_path

ENTRIES = [b"%d" % number for number in range(1_100)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]


def oracle(size: int) -> pymerkle.InmemoryTree:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for entry in ENTRIES[:size]:
        tree.append_entry(entry)
    return tree


ORACLE = oracle(len(ENTRIES))


def tiles_of(leaves: list[bytes]) -> Tiles:
    """The tiles as the definition says, made without the code that grows them."""
    levels = [leaves]
    while len(levels[-1]) >= WIDTH:
        below = levels[-1]
        whole = len(below) // WIDTH
        levels.append([naive_root(below[at * WIDTH : (at + 1) * WIDTH]) for at in range(whole)])

    def read(level: int, number: int) -> bytes:
        return b"".join(levels[level][number * WIDTH : (number + 1) * WIDTH]) if level < len(levels) else b""

    return Tiles(read)


def naive_root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    left = 1
    while left * 2 < len(leaves):
        left *= 2
    return node_hash(naive_root(leaves[:left]), naive_root(leaves[left:]))


TILES = tiles_of(LEAVES)


@pytest.mark.parametrize("size", [*range(1, 40), 255, 256, 257, 511, 512, 513, 1_000, 1_100])
def test_root_of_any_size_is_pymerkles(size: int) -> None:
    assert TILES.root(size) == ORACLE.get_root(size)


@given(st.data())
def test_inclusion_path_leads_to_pymerkles_root_and_is_its_path(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(LEAVES)))
    index = data.draw(st.integers(0, size - 1))
    path = TILES.inclusion(index, size)
    assert root_of_path(LEAVES[index], index, size, path) == ORACLE.get_root(size)
    theirs = ORACLE.prove_inclusion(index + 1, size).serialize()["path"]
    assert {step.hex() for step in path} | {LEAVES[index].hex()} == set(theirs)


def test_root_of_more_than_a_level_of_whole_tiles_is_the_definitions() -> None:
    leaves = [leaf_hash(b"%d" % number) for number in range(WIDTH * WIDTH + WIDTH + 3)]
    tiles = tiles_of(leaves)
    for size in (WIDTH * WIDTH - 1, WIDTH * WIDTH, len(leaves)):
        assert tiles.root(size) == naive_root(leaves[:size])
    index = WIDTH * WIDTH + 7
    path = tiles.inclusion(index, len(leaves))
    assert root_of_path(leaves[index], index, len(leaves), path) == naive_root(leaves)


def test_proof_of_a_tree_with_missing_leaves_is_refused() -> None:
    with pytest.raises(TreeDamaged):
        tiles_of(LEAVES[:300]).root(400)


def test_reduced_is_the_root_of_a_perfect_tree() -> None:
    assert reduced(b"".join(LEAVES[:WIDTH])) == naive_root(LEAVES[:WIDTH])
    assert len(reduced(LEAVES[0])) == HASH_BYTES
