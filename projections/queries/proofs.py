"""Queries on the audit trees: the leaf of an entry, and its proof."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from struct import iter_unpack
from typing import NamedTuple

from projections.audit.tiles import BITS, HASH_BYTES, WIDTH, Tiles
from projections.audit.trees import TreeKey
from projections.folds.audit import NO_PROJECT
from projections.folds.events.definitions import RULE_ACTIONS
from projections.queries.moment import Moment
from projections.tables.audit import AUDIT_ENTRIES, AUDIT_TILES, AUDIT_TREES, TileRow
from schemas.audit import TopicRole

_OF_TREE = '"tenant" = ? AND "topic" = ? AND "log_partition" = ?'


class Place(NamedTuple):
    """The place of an entry's record."""

    tree: TreeKey
    offset: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of a tree."""

    index: int
    offset: int
    hash: bytes


def place_of_entry(moment: Moment, tenant: str, project: str, event_id: str) -> Place | None:
    """The place of an audit entry's event, which belongs to the project or to the whole tenant."""
    tail = 'WHERE "tenant" = ? AND "event_id" = ? AND "project" IN (?, ?) LIMIT 1'
    rows = moment.select(AUDIT_ENTRIES, tail, (tenant, event_id, project, NO_PROJECT))
    if not rows:
        return None
    row = rows[0]
    # Definitions, published or refused, belong to no execution.
    is_definition = row["execution_id"] is None or row["action"] in RULE_ACTIONS
    topic: TopicRole = "definitions" if is_definition else "executions"
    return Place(TreeKey(tenant, topic, row["log_partition"]), row["log_offset"])


def tree_size(moment: Moment, tree: TreeKey) -> int:
    """The number of leaves of a tree; 0 if there is no such tree."""
    row = moment.one(AUDIT_TREES, tenant=tree.tenant, topic=tree.topic, log_partition=tree.partition)
    return 0 if row is None else int(row["size"])


def tiles_of(moment: Moment, tree: TreeKey) -> Tiles:
    """A tree's tiles, to compute roots and proofs from."""

    def read(level: int, number: int) -> bytes:
        row = _tile(moment, tree, level, number)
        return b"" if row is None else bytes(row["hashes"])

    return Tiles(read)


def index_of(moment: Moment, tree: TreeKey, offset: int) -> int | None:
    """The index of the leaf with this offset; None if there is none."""
    tail = f'WHERE {_OF_TREE} AND "level" = 0 AND "first_offset" <= ? ORDER BY "first_offset" DESC LIMIT 1'
    rows = moment.select(AUDIT_TILES, tail, (*tree, offset))
    if not rows:
        return None
    offsets = _offsets(rows[0])
    at = bisect_left(offsets, offset)
    return (rows[0]["number"] << BITS) + at if at < len(offsets) and offsets[at] == offset else None


def leaves(moment: Moment, tree: TreeKey, after: int, limit: int) -> Iterator[Leaf]:
    """The leaves after an index, in order, at most `limit`."""
    index, left = after + 1, limit
    while left > 0 and (row := _tile(moment, tree, 0, index >> BITS)) is not None:
        hashes, offsets = bytes(row["hashes"]), _offsets(row)
        for at in range(index & (WIDTH - 1), min(len(offsets), (index & (WIDTH - 1)) + left)):
            yield Leaf(index, offsets[at], hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES])
            index, left = index + 1, left - 1
        if len(offsets) < WIDTH:
            return


def _tile(moment: Moment, tree: TreeKey, level: int, number: int) -> TileRow | None:
    tail = f'WHERE {_OF_TREE} AND "level" = ? AND "number" = ?'
    return next(iter(moment.select(AUDIT_TILES, tail, (*tree, level, number))), None)


def _offsets(row: TileRow) -> list[int]:
    return [offset for (offset,) in iter_unpack(">Q", row["offsets"])]
