"""Roots and proofs of a tree that is stored as tiles: 256 hashes wide, one level for every eight of the tree's.

Tile `number` of level 0 holds 256 leaf hashes; an entry of level L + 1 is the root of one whole tile of level L. The
last tile of a level can be partly full. So any query about a tree of any size reads a few tiles of each level and
computes a few hundred hashes. Roots and paths are defined in RFC 9162, section 2.1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from schemas.merkle import node_hash

BITS = 8
WIDTH = 1 << BITS
HASH_BYTES = 32
TILE_BYTES = WIDTH * HASH_BYTES

ReadTile = Callable[[int, int], bytes]


class TreeDamaged(Exception):
    """A tree's rows hold fewer leaves than its size says; `str()` says what to do."""


def reduced(hashes: bytes) -> bytes:
    """The root of a perfect subtree, from its 2^k hashes in a row."""
    # `node_hash` of each adjacent pair, inlined: every 256th record of a rebuild passes through here.
    pair = 2 * HASH_BYTES
    while len(hashes) > HASH_BYTES:
        hashes = b"".join(
            [sha256(b"\x01" + hashes[at : at + pair]).digest() for at in range(0, len(hashes), pair)]
        )
    return hashes


@dataclass(slots=True)
class Tiles:
    """One tree. `read` returns the hashes of a tile by level and number; each tile is read once."""

    read: ReadTile
    _seen: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def root(self, size: int) -> bytes:
        """The root of the first `size` leaves; `size` is at least 1.

        Raises:
            TreeDamaged: the tiles hold fewer leaves; likewise in the methods below.
        """
        return self._range(0, size)

    def leaf(self, index: int) -> bytes:
        """The hash of a leaf."""
        return self._perfect(0, index)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """The audit path of a leaf in the tree of the first `size`, from the leaf up."""
        low, high = 0, size
        path: list[bytes] = []
        while high - low > 1:
            middle = low + _split(high - low)
            if index < middle:
                path.append(self._range(middle, high))
                high = middle
            else:
                path.append(self._range(low, middle))
                low = middle
        return path[::-1]

    def consistency(self, old: int, new: int) -> list[bytes]:
        """The proof that the tree of the first `old` leaves is a prefix of that of the first `new`."""
        return self._subproof(old, 0, new, whole=True) if 0 < old < new else []

    def _subproof(self, old: int, low: int, high: int, *, whole: bool) -> list[bytes]:
        size = high - low
        if old == size:
            return [] if whole else [self._range(low, high)]
        left = _split(size)
        if old <= left:
            return [*self._subproof(old, low, low + left, whole=whole), self._range(low + left, high)]
        return [
            *self._subproof(old - left, low + left, high, whole=False),
            self._range(low, low + left),
        ]

    def _range(self, low: int, high: int) -> bytes:
        size = high - low
        if size & (size - 1) == 0:
            height = size.bit_length() - 1
            return self._perfect(height, low >> height)
        middle = low + _split(size)
        return node_hash(self._range(low, middle), self._range(middle, high))

    def _perfect(self, height: int, index: int) -> bytes:
        level, above = divmod(height, BITS)
        number, at = divmod(index << above, WIDTH)
        begin, end = at * HASH_BYTES, (at + (1 << above)) * HASH_BYTES
        hashes = self._tile(level, number)
        if len(hashes) < end:
            raise TreeDamaged(
                "An audit tree of the view has lost leaves: rebuild the view with placet replay --force."
            )
        return reduced(hashes[begin:end])

    def _tile(self, level: int, number: int) -> bytes:
        found = self._seen.get((level, number))
        if found is None:
            found = self._seen[level, number] = self.read(level, number)
        return found


def _split(size: int) -> int:
    """The largest power of two smaller than a size."""
    return 1 << (size - 1).bit_length() - 1
