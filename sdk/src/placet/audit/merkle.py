"""Roots, audit paths and consistency proofs as defined in RFC 9162, section 2.1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

HASH_BYTES = 32


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 ‖ left ‖ right)."""
    return sha256(b"\x01" + left + right).digest()


@dataclass
class GrowingTree:
    """A tree to which leaf hashes are added; its root is available at any size."""

    size: int = 0
    _peaks: list[bytes] = field(default_factory=list)

    def add(self, leaf: bytes) -> None:
        """Add a leaf."""
        node, size = leaf, self.size
        while size & 1:
            node = sha256(b"\x01" + self._peaks.pop() + node).digest()
            size >>= 1
        self._peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        """The present root."""
        if not self._peaks:
            return sha256(b"").digest()
        node = self._peaks[-1]
        for left in self._peaks[-2::-1]:
            node = node_hash(left, node)
        return node


def roots_at(leaves: Sequence[bytes], sizes: Iterable[int]) -> dict[int, bytes]:
    """The roots of the first leaves, for each size that the leaves reach."""
    tree = GrowingTree()
    found = {}
    for size in sorted(set(sizes)):
        if size > len(leaves):
            break
        for index in range(tree.size, size):
            tree.add(leaves[index])
        found[size] = tree.root()
    return found


def root_of_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that an audit path leads to (section 2.1.3.2); None if it does not fit the index and size."""
    if not 0 <= index < size:
        return None
    node, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Returns True if a proof shows that the tree of `new` leaves begins with that of `old` (section 2.1.4.2)."""
    if old == new:
        return old_root == new_root and not path
    if not 0 < old < new or not path:
        return False
    steps = list(path) if old & (old - 1) else [old_root, *path]
    node, last = old - 1, new - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first, second = node_hash(step, first), node_hash(step, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = node_hash(second, step)
        node, last = node >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root
