"""RFC 6962 trees, against the RFC's own vectors, a naive reading of its definition, and pymerkle."""

from __future__ import annotations

import hashlib

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.merkle import leaf_hash, node_hash, root_and_paths, root_of_path

# The leaves and roots of the Certificate Transparency test suite (google/certificate-transparency).
CT_LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

TREES = st.lists(st.binary(max_size=8), min_size=1, max_size=40)


def naive_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + naive_root(leaves[:split]) + naive_root(leaves[split:])).digest()


def naive_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, section 2.1.1, word for word."""
    if len(leaves) == 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    if index < split:
        return [*naive_path(index, leaves[:split]), naive_root(leaves[split:])]
    return [*naive_path(index - split, leaves[split:]), naive_root(leaves[:split])]


@pytest.mark.parametrize("size", range(1, 9))
def test_root_of_the_transparency_leaves_is_the_published_one(size: int) -> None:
    root, _ = root_and_paths([leaf_hash(leaf) for leaf in CT_LEAVES[:size]])
    assert root.hex() == CT_ROOTS[size - 1]


def test_path_of_the_transparency_leaves_is_the_published_one() -> None:
    _, paths = root_and_paths([leaf_hash(leaf) for leaf in CT_LEAVES])
    assert [hash_.hex() for hash_ in paths[0]] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]


@given(TREES)
def test_root_and_paths_of_any_tree_are_the_definitions(leaves: list[bytes]) -> None:
    root, paths = root_and_paths([leaf_hash(leaf) for leaf in leaves])
    assert root == naive_root(leaves)
    assert paths == [naive_path(index, leaves) for index in range(len(leaves))]


@given(TREES)
def test_root_of_any_tree_is_pymerkles(leaves: list[bytes]) -> None:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for leaf in leaves:
        tree.append_entry(leaf)
    assert root_and_paths([leaf_hash(leaf) for leaf in leaves])[0] == tree.get_root()


@given(TREES)
def test_root_of_path_of_every_leaf_is_the_root(leaves: list[bytes]) -> None:
    hashes = [leaf_hash(leaf) for leaf in leaves]
    root, paths = root_and_paths(hashes)
    for index, path in enumerate(paths):
        assert root_of_path(hashes[index], index, len(leaves), path) == root


@given(st.lists(st.binary(min_size=4, max_size=4), min_size=2, max_size=20, unique=True), st.data())
def test_root_of_path_from_another_place_or_leaf_is_not_the_root(
    leaves: list[bytes], data: st.DataObject
) -> None:
    hashes = [leaf_hash(leaf) for leaf in leaves]
    root, paths = root_and_paths(hashes)
    index, other = data.draw(st.permutations(range(len(leaves))))[:2]
    assert root_of_path(hashes[index], other, len(leaves), paths[index]) != root
    assert root_of_path(hashes[other], index, len(leaves), paths[index]) != root


@given(TREES, st.data())
def test_root_of_path_too_long_or_short_fits_nothing(leaves: list[bytes], data: st.DataObject) -> None:
    hashes = [leaf_hash(leaf) for leaf in leaves]
    _, paths = root_and_paths(hashes)
    index = data.draw(st.integers(0, len(leaves) - 1))
    assert root_of_path(hashes[index], index, len(leaves), [*paths[index], hashes[0]]) is None
    if paths[index]:
        assert root_of_path(hashes[index], index, len(leaves), paths[index][:-1]) is None


@pytest.mark.parametrize(("index", "size"), [(-1, 1), (0, 0), (1, 1), (5, 3), (0, -1)])
def test_root_of_path_outside_the_tree_is_none(index: int, size: int) -> None:
    assert root_of_path(b"\x00" * 32, index, size, []) is None


def test_node_and_leaf_hashes_never_meet() -> None:
    assert leaf_hash(b"ab") != node_hash(b"a", b"b") != hashlib.sha256(b"ab").digest()
