"""Merkle trees as RFC 6962 (Certificate Transparency), section 2.1, defines them."""

from collections.abc import Sequence
from hashlib import sha256


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 ‖ data)."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 ‖ left ‖ right)."""
    return sha256(b"\x01" + left + right).digest()


def root_and_paths(leaves: Sequence[bytes]) -> tuple[bytes, list[list[bytes]]]:
    """The root of a non-empty tree and, for each leaf hash, its audit path from the leaf up."""
    paths: list[list[bytes]] = [[] for _ in leaves]
    level = [(hash_, [index]) for index, hash_ in enumerate(leaves)]
    while len(level) > 1:
        level = _next_level(level, paths)
    return level[0][0], paths


def root_of_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that an audit path leads to (RFC 9162, section 2.1.3.2).

    Returns:
        None if the path does not fit the index and size.
    """
    if not 0 <= index < size:
        return None
    node, last, hash_ = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        # The same as `node_hash` without a call for each step: each reader verifies every record of the log.
        if node & 1 or node == last:
            hash_ = sha256(b"\x01" + sibling + hash_).digest()
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            hash_ = sha256(b"\x01" + hash_ + sibling).digest()
        node, last = node >> 1, last >> 1
    return hash_ if last == 0 else None


def _next_level(
    level: list[tuple[bytes, list[int]]], paths: list[list[bytes]]
) -> list[tuple[bytes, list[int]]]:
    above = []
    for left, right in zip(level[::2], level[1::2], strict=False):
        for index in left[1]:
            paths[index].append(right[0])
        for index in right[1]:
            paths[index].append(left[0])
        above.append((node_hash(left[0], right[0]), left[1] + right[1]))
    if len(level) % 2:
        above.append(level[-1])
    return above
