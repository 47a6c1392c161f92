"""The trees while they grow: records become leaves, leaves become the rows of tiles.

Only the last tile of each level is in memory; a tree that was not used recently is read from the store again.
"""

import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from projections.audit.tiles import BITS, HASH_BYTES, TILE_BYTES, WIDTH, reduced
from projections.store.port import Position, RowStore, Values
from projections.tables.audit import AUDIT_TILES, AUDIT_TREES
from schemas.audit import TopicRole, record_leaf, tenant_of
from schemas.record import RawRecord

CAPACITY = 2_048
# The tiles of lower levels say where a tile of a higher level begins.
NO_OFFSET = -1


class TreeKey(NamedTuple):
    """Identifies a tree."""

    tenant: str
    topic: TopicRole
    partition: int


@dataclass(slots=True)
class Tree:
    """The right edge of one tree: its last tiles, unless they are full."""

    key: TreeKey
    size: int = 0
    last_offset: int = -1
    offsets: bytearray = field(default_factory=bytearray)
    tails: list[bytearray] = field(default_factory=lambda: [bytearray()])
    _full: list[Values] = field(default_factory=list)
    _touched: int = 0

    def grow(self, leaves: Sequence[bytes], offsets: Sequence[int]) -> None:
        """Add leaves with their offsets."""
        begin = 0
        while begin < len(leaves):
            end = min(len(leaves), begin + WIDTH - (self.size & (WIDTH - 1)))
            self.offsets += struct.pack(f">{end - begin}Q", *offsets[begin:end])
            self.size += end - begin
            self._add(0, b"".join(leaves[begin:end]))
            begin = end
        self.last_offset = offsets[-1]

    def row(self) -> Values:
        """Its row in `audit_trees`."""
        return (*self.key, self.size, self.last_offset)

    def tiles(self) -> list[Values]:
        """The rows of the tiles that changed since the last call."""
        rows = [*self._full, *(self._tile(level) for level in range(self._touched) if self.tails[level])]
        self._full, self._touched = [], 0
        return rows

    def _add(self, level: int, hashes: bytes) -> None:
        if level == len(self.tails):
            self.tails.append(bytearray())
        tail = self.tails[level]
        tail += hashes
        self._touched = max(self._touched, level + 1)
        if len(tail) == TILE_BYTES:
            self._full.append(self._tile(level))
            self._add(level + 1, reduced(bytes(tail)))
            tail.clear()
            if level == 0:
                self.offsets.clear()

    def _tile(self, level: int) -> Values:
        tail = self.tails[level]
        number = ((self.size >> BITS * level) - 1) >> BITS
        if level:
            return (*self.key, level, number, NO_OFFSET, bytes(tail), b"")
        first = int.from_bytes(self.offsets[:8], "big")
        return (*self.key, 0, number, first, bytes(tail), bytes(self.offsets))


class Trees:
    """The trees that a writer appends to. Like the row cache, it is discarded after a failure."""

    def __init__(self, store: RowStore, capacity: int = CAPACITY) -> None:
        self._store = store
        self._capacity = capacity
        self._trees: OrderedDict[TreeKey, Tree] = OrderedDict()
        self._touched: dict[TreeKey, Tree] = {}
        # A partition that is read from its beginning has only the trees met here.
        self._whole: dict[tuple[TopicRole, int], set[str]] = {}

    def grow(self, topic: TopicRole, position: Position, records: Sequence[RawRecord]) -> None:
        """Add the records of one partition that have a leaf, in offset order."""
        partition = position.partition
        if position.next_offset == 0:
            self._whole[topic, partition] = set()
        by_tenant: dict[str | None, list[RawRecord]] = {}
        for record in records:
            by_tenant.setdefault(tenant_of(record.key), []).append(record)
        for tenant, own in by_tenant.items():
            if tenant is not None:
                tree = self._tree(TreeKey(tenant, topic, partition))
                tree.grow([record_leaf(topic, record) for record in own], [record.offset for record in own])

    def rows(self) -> tuple[list[Values], list[Values]]:
        """The rows of trees and tiles that changed in the batch under way."""
        touched = self._touched.values()
        return [tree.row() for tree in touched], [tile for tree in touched for tile in tree.tiles()]

    def written(self) -> None:
        """Note that the rows of the batch are in the database."""
        self._touched = {}
        while len(self._trees) > self._capacity:
            self._trees.popitem(last=False)

    def _tree(self, key: TreeKey) -> Tree:
        tree = self._trees.pop(key, None) or self._found(key)
        self._trees[key] = self._touched[key] = tree
        return tree

    def _found(self, key: TreeKey) -> Tree:
        met = self._whole.get(key[1:])
        if met is not None and key.tenant not in met:
            met.add(key.tenant)
            return Tree(key)
        return load_tree(self._store, key)


def load_tree(store: RowStore, key: TreeKey) -> Tree:
    """The right edge of a tree, read from the store."""
    rows = store.load(AUDIT_TREES, [key])
    if not rows:
        return Tree(key)
    tree = Tree(key, rows[0]["size"], rows[0]["last_offset"], tails=[])
    level = 0
    while level == 0 or tree.size >> BITS * level:
        entries = tree.size >> BITS * level
        tail = bytearray()
        if entries & (WIDTH - 1):
            tile = store.load(AUDIT_TILES, [(*key, level, entries >> BITS)])[0]
            tail += tile["hashes"]
            if level == 0:
                tree.offsets += tile["offsets"]
        assert len(tail) == (entries & (WIDTH - 1)) * HASH_BYTES
        tree.tails.append(tail)
        level += 1
    return tree
