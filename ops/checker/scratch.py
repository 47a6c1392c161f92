"""What the checker must remember of a log, whose length nobody knows: on disk, with a bounded part of it at hand.

SQLite's database without a name is a private file that is gone with its connection; it is written to the directory
for temporary files only once the page cache is full.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

# Of 4 KiB each: 64 MiB, however long the log is.
CACHE_PAGES = 16_384
AT_HAND = 4_000

_TABLES = """
CREATE TABLE kept (kind TEXT, address TEXT, value BLOB, PRIMARY KEY (kind, address)) WITHOUT ROWID;
CREATE TABLE commands (part TEXT, place INTEGER, appended_ms INTEGER, name BLOB, digest TEXT, id TEXT, type TEXT,
    said BLOB, PRIMARY KEY (part, place)) WITHOUT ROWID;
CREATE TABLE traces (part TEXT, name BLOB, digest TEXT, about_log INTEGER, first INTEGER, last INTEGER, value BLOB);
CREATE INDEX traces_by_name ON traces (part, name, digest);
CREATE TABLE letters (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE doubts (part TEXT, place INTEGER, value BLOB);
CREATE TABLE uses (call BLOB, reservation_id TEXT, value BLOB);
CREATE INDEX uses_by_call ON uses (call);
CREATE TABLE trust_facts (place TEXT, terms TEXT, class TEXT, part INTEGER, place_in INTEGER, value TEXT,
    PRIMARY KEY (place, terms, class, part, place_in)) WITHOUT ROWID;
CREATE TABLE trust_releases (place TEXT, class TEXT, value TEXT);
CREATE TABLE samples (address TEXT PRIMARY KEY, part INTEGER, place TEXT, terms TEXT, class TEXT, place_in TEXT);
CREATE INDEX samples_by_terms ON samples (part, place, terms);
"""

T = TypeVar("T")


class Scratch:
    """A private database; gone when it is closed."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = {CACHE_PAGES}"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.executescript(_TABLES)
        self._database.execute("BEGIN")

    def add(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows by a statement with a parameter for each value."""
        self._database.executemany(statement, rows)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """What a statement finds, row by row."""
        return iter(self._database.execute(statement, values))

    def one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row that a statement finds."""
        row: tuple[Any, ...] | None = self._database.execute(statement, values).fetchone()
        return row

    def close(self) -> None:
        """Forget everything."""
        self._database.close()


class Shelf(Generic[T]):
    """Values by address: the newest at hand, the others on disk. A value that is at hand may be changed in place."""

    def __init__(self, scratch: Scratch, kind: str, of: Any, at_hand: int = 0) -> None:
        """Begin with nothing.

        Args:
            scratch: where values go that are not at hand.
            kind: names the shelf in it.
            of: the type T of the values, one that msgspec can write and read.
            at_hand: how many are kept in memory, up to twice; `AT_HAND` where none is given.
        """
        self._scratch = scratch
        self._kind = kind
        self._decoder = msgspec.msgpack.Decoder(of)
        self._at_hand = at_hand
        self._young: dict[str, T] = {}
        self._old: dict[str, T] = {}

    def get(self, address: str) -> T | None:
        """The value at an address."""
        found = self._young.get(address)
        if found is None:
            found = self._old.pop(address, None)
            if found is None:
                row = self._scratch.one(_ONE, (self._kind, address))
                found = None if row is None else self._decoder.decode(row[0])
            if found is not None:
                self.put(address, found)
        return found

    def put(self, address: str, value: T) -> None:
        """Set the value at an address."""
        self._young[address] = value
        if len(self._young) > (self._at_hand or AT_HAND):
            self._write(self._old)
            self._old, self._young = self._young, {}

    def items(self, prefix: str = "") -> Iterator[tuple[str, T]]:
        """All values whose addresses begin with a prefix, by address."""
        self._write(self._old)
        self._write(self._young)
        end = prefix + "\U0010ffff"
        for address, value in self._scratch.rows(_RANGE, (self._kind, prefix, end)):
            yield address, self._decoder.decode(value)

    def _write(self, values: dict[str, T]) -> None:
        self._scratch.add(_PUT, [(self._kind, at, _encode(value)) for at, value in values.items()])


_ONE = "SELECT value FROM kept WHERE kind = ? AND address = ?"
_RANGE = "SELECT address, value FROM kept WHERE kind = ? AND address >= ? AND address < ? ORDER BY address"
_PUT = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)"
_encode = msgspec.msgpack.encode


class Part(Generic[T]):
    """The values of a shelf that belong to one thing, by their own names."""

    def __init__(self, shelf: Shelf[T], of: str) -> None:
        self._shelf = shelf
        self._prefix = f"{of}\n"

    def get(self, name: str) -> T | None:
        """The value of a name."""
        return self._shelf.get(self._prefix + name)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __setitem__(self, name: str, value: T) -> None:
        self._shelf.put(self._prefix + name, value)

    def setdefault(self, name: str, value: T) -> T:
        """The value of a name, or the given one from now on."""
        found = self.get(name)
        if found is None:
            self[name] = found = value
        return found

    def items(self) -> Iterator[tuple[str, T]]:
        """All names and values."""
        return ((address[len(self._prefix) :], value) for address, value in self._shelf.items(self._prefix))


def short(text: str) -> bytes:
    """What stands for a text of any length: 16 bytes of its SHA-256."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:16]
