"""Cursors: the position of a reader in the log, as a text that cannot be forged.

A cursor names, for the definitions and for each partition of the executions, the last record that counted and
a mark of its id. A reader who returns with it continues from exactly there; if the log is another one (the mark
is not found) or the records are no longer available, the answer is `resync_required`, never a gap.

A command's events make several messages. A cursor between two of them says so: `lane` is the lane of that command's
events (its last record is the one named for the lane) and `given` the number of its messages that were sent.

`EARLIEST` stands for the position before the first record, where a reader can begin without a cursor of its own.

Form: base64url(version, lane, given, count, an offset and a 4-byte mark each, 16 bytes of HMAC-SHA256). Offsets
are counted from 1 (0: none) in 4 bytes (version 1), or in 8 if one does not fit (version 2).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import struct
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

SHORT, LONG = 1, 2
SHORT_MAX = 2**32 - 2
MAC_BYTES = 16
NONE = -1
EARLIEST = "earliest"
ALL_GIVEN = 0xFFFF
HEAD = struct.Struct(">BBHH")


NOT_OURS = (
    "this is no position in this installation's log: give the `cursor` of a message or an answer, or the `id` of an "
    "event of a stream, not the `next_cursor` of a list"
)


class CursorRefused(ValueError):
    """The text is not a cursor of this installation."""


class Vector(NamedTuple):
    """The last record handled per lane, −1 for none. Lane 0 is the definitions, lane 1 + p partition p."""

    offsets: tuple[int, ...]
    marks: tuple[int, ...]
    lane: int = 0
    given: int = ALL_GIVEN


def mark_of(event_id: str) -> int:
    """Return a record's mark: CRC-32 of its id. It distinguishes logs; the proof of authenticity is the HMAC."""
    return zlib.crc32(event_id.encode())


@dataclass(frozen=True, slots=True)
class CursorKey:
    """Writes and reads cursors for a log with a fixed number of lanes."""

    secret: bytes
    lanes: int
    _forms: dict[int, struct.Struct] = field(init=False)

    def __post_init__(self) -> None:
        forms = {
            version: struct.Struct(f">BBHH{self.lanes}{kind}{self.lanes}I")
            for version, kind in ((SHORT, "I"), (LONG, "Q"))
        }
        object.__setattr__(self, "_forms", forms)

    def start(self) -> Vector:
        """Return the position before the first record."""
        return Vector((NONE,) * self.lanes, (0,) * self.lanes)

    def write(self, vector: Vector) -> str:
        """Return the cursor of a vector."""
        version = SHORT if max(vector.offsets) <= SHORT_MAX else LONG
        offsets = [offset + 1 for offset in vector.offsets]
        data = self._forms[version].pack(
            version, vector.lane, vector.given, self.lanes, *offsets, *vector.marks
        )
        return base64.urlsafe_b64encode(data + self._mac(data)).rstrip(b"=").decode()

    def read(self, text: str) -> Vector:
        """Return the vector of a cursor.

        Raises:
            CursorRefused: it was not written with this key, or for another number of partitions.
        """
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error) as error:
            raise CursorRefused(NOT_OURS) from error
        data, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(data)):
            raise CursorRefused(NOT_OURS)
        version, lane, given, lanes = HEAD.unpack_from(data)
        form = self._forms.get(version)
        if form is None or lanes != self.lanes or len(data) != form.size:
            raise CursorRefused("this is from another log: begin again without it")
        numbers = form.unpack(data)[4:]
        offsets = tuple(number - 1 for number in numbers[:lanes])
        return Vector(offsets, numbers[lanes:], lane, given)

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self.secret, data, "sha256")[:MAC_BYTES]


@dataclass(slots=True)
class Position:
    """The position of a reader. Its cursor is made on request, once for each step."""

    key: CursorKey
    offsets: list[int]
    marks: list[int]
    _text: str | None = None

    @classmethod
    def at_start(cls, key: CursorKey) -> Position:
        """The position before the first record."""
        return cls.at(key, key.start())

    @classmethod
    def at(cls, key: CursorKey, vector: Vector) -> Position:
        """The position of a vector."""
        return cls(key, list(vector.offsets), list(vector.marks))

    def advance(self, lane: int, offset: int, mark: int) -> None:
        """Move on to a record that counts and was handled."""
        self.offsets[lane] = offset
        self.marks[lane] = mark
        self._text = None

    def cursor(self) -> str:
        """Return the position as a cursor."""
        if self._text is None:
            self._text = self.key.write(Vector(tuple(self.offsets), tuple(self.marks)))
        return self._text

    def cursor_within(self, lane: int, given: int, total: int) -> str:
        """Return a cursor after the first `given` of the `total` messages of the lane's last command."""
        if given >= total:
            return self.cursor()
        return self.key.write(Vector(tuple(self.offsets), tuple(self.marks), lane, given))

    def reached(self, vector: Vector) -> bool:
        """Return True if everything up to the vector was handled."""
        return all(mine >= theirs for mine, theirs in zip(self.offsets, vector.offsets, strict=True))
