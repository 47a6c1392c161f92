"""The outbox: the messages to send, the position in the log, and what is open; one SQLite file, one process.

A round of facts is one transaction: the position, what is open, and the messages that follow are stored together or
not at all. Only then are the records acknowledged. A message is deleted when it was accepted, or when its dead letter
is in the log. So however the process ends, each message is sent at least once, under the same id.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from services.processors.errors import OutboxUnusable
from services.processors.notifications.notice import ASKING, Call, Hold, Notice
from vitals.damage import check_integrity, damage_message, is_damage

VERSION = 2
LOCK_WITHIN_S = 10.0
NOTHING = -1
# An older copy would send again what was sent since.
MEND = "move it away together with its -wal file; the messages waiting in it are then not sent"

_TABLES = """
CREATE TABLE positions (
    partition INTEGER PRIMARY KEY, topic_id TEXT NOT NULL, through_offset INTEGER NOT NULL,
    record_id TEXT NOT NULL, term INTEGER NOT NULL, quiet_through INTEGER NOT NULL
);
CREATE TABLE executions (log_key BLOB PRIMARY KEY, agent TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE calls (
    log_key BLOB NOT NULL, call_id TEXT NOT NULL, call BLOB NOT NULL, PRIMARY KEY (log_key, call_id)
) WITHOUT ROWID;
CREATE TABLE holds (
    log_key BLOB NOT NULL, hold_id TEXT NOT NULL, hold BLOB NOT NULL, PRIMARY KEY (log_key, hold_id)
) WITHOUT ROWID;
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, endpoint TEXT NOT NULL, event_id TEXT NOT NULL,
    log_key BLOB NOT NULL, hold_id TEXT NOT NULL, asking INTEGER NOT NULL, notice BLOB NOT NULL,
    queued_at_ms INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, tries INTEGER NOT NULL,
    digest TEXT NOT NULL, began_at_ms INTEGER NOT NULL DEFAULT 0, UNIQUE (endpoint, event_id)
);
CREATE INDEX messages_by_endpoint ON messages (endpoint, seq);
CREATE TABLE attempts (endpoint TEXT NOT NULL, at_ms INTEGER NOT NULL);
CREATE INDEX attempts_by_endpoint ON attempts (endpoint, at_ms);
"""
# In version 1 a message's time began when it was queued.
_FROM_VERSION_1 = """
ALTER TABLE messages ADD COLUMN began_at_ms INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET began_at_ms = queued_at_ms WHERE tries > 0;
"""
_COLUMNS = "seq, notice, queued_at_ms, due_at_ms, tries, digest, began_at_ms"


class Position(NamedTuple):
    """The position in a partition: the last record that was read, its id, and the claim then in force.

    Records up to `quiet_through` are not reported: they were recorded before notifications were set up.
    """

    partition: int
    topic_id: str
    through_offset: int
    record_id: str
    term: int
    quiet_through: int


class Queued(NamedTuple):
    """A message that waits; those with the same digest are sent as one.

    `began_at_ms` is the time of its own first turn, 0 before: the time that it waits behind others does not count.
    """

    seq: int
    notice: Notice
    queued_at_ms: int
    due_at_ms: int
    tries: int
    digest: str
    began_at_ms: int


class Outbox:
    """See the module. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open it, or create it.

        Raises:
            OutboxUnusable: another process has it, or it cannot be read or written.
        """
        self._path = path
        with self._explained():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=LOCK_WITHIN_S, isolation_level=None)
            path.chmod(0o600)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            check_integrity(self._db)
            self._make()
        self._holds = msgspec.msgpack.Decoder(Hold)
        self._calls = msgspec.msgpack.Decoder(Call)
        self._notices = msgspec.msgpack.Decoder(Notice)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything written inside is stored on the disk as a whole at the end, or not at all.

        Raises:
            OutboxUnusable: it cannot be written.
        """
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def positions(self) -> dict[int, Position]:
        """The position in each partition."""
        rows = self._rows(
            "SELECT partition, topic_id, through_offset, record_id, term, quiet_through FROM positions"
        )
        return {row[0]: Position(*row) for row in rows}

    def put_position(self, position: Position) -> None:
        """Store the position in a partition."""
        self._write("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?, ?)", *position)

    def agent_of(self, key: bytes) -> str:
        """See `facts.Context`."""
        rows = self._rows("SELECT agent FROM executions WHERE log_key = ?", key)
        return str(rows[0][0]) if rows else ""

    def start(self, key: bytes, agent: str) -> None:
        """See `facts.Context`."""
        self._write("INSERT OR REPLACE INTO executions VALUES (?, ?)", key, agent)

    def end(self, key: bytes) -> None:
        """See `facts.Context`."""
        self._write("DELETE FROM executions WHERE log_key = ?", key)

    def call(self, key: bytes, call_id: str) -> Call | None:
        """See `facts.Context`."""
        rows = self._rows("SELECT call FROM calls WHERE log_key = ? AND call_id = ?", key, call_id)
        return self._calls.decode(rows[0][0]) if rows else None

    def put_call(self, key: bytes, call_id: str, call: Call) -> None:
        """See `facts.Context`."""
        self._write(
            "INSERT OR REPLACE INTO calls VALUES (?, ?, ?)", key, call_id, msgspec.msgpack.encode(call)
        )

    def drop_call(self, key: bytes, call_id: str) -> None:
        """See `facts.Context`."""
        self._write("DELETE FROM calls WHERE log_key = ? AND call_id = ?", key, call_id)

    def hold(self, key: bytes, hold_id: str) -> Hold | None:
        """See `facts.Context`."""
        rows = self._rows("SELECT hold FROM holds WHERE log_key = ? AND hold_id = ?", key, hold_id)
        return self._holds.decode(rows[0][0]) if rows else None

    def put_hold(self, key: bytes, hold_id: str, hold: Hold) -> None:
        """See `facts.Context`."""
        self._write(
            "INSERT OR REPLACE INTO holds VALUES (?, ?, ?)", key, hold_id, msgspec.msgpack.encode(hold)
        )

    def drop_hold(self, key: bytes, hold_id: str) -> None:
        """See `facts.Context`."""
        self._write("DELETE FROM holds WHERE log_key = ? AND hold_id = ?", key, hold_id)

    def put_message(self, endpoint: str, notice: Notice, now_ms: int) -> None:
        """Queue a message; one that was already queued for an endpoint is not queued again."""
        self._write(
            "INSERT OR IGNORE INTO messages (endpoint, event_id, log_key, hold_id, asking, notice, queued_at_ms, "
            "due_at_ms, tries, digest) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, '')",
            endpoint,
            notice.id,
            notice.source.key,
            notice.hold_id,
            int(notice.type in ASKING),
            msgspec.msgpack.encode(notice),
            now_ms,
        )

    def next(self, endpoint: str) -> list[Queued]:
        """The oldest message of an endpoint, with those of its digest; empty if none waits."""
        first = self._queued("WHERE endpoint = ? ORDER BY seq LIMIT 1", endpoint)
        if not first or not first[0].digest:
            return first
        return self._queued("WHERE endpoint = ? AND digest = ? ORDER BY seq", endpoint, first[0].digest)

    def fresh(self, endpoint: str, limit: int) -> list[Queued]:
        """The messages that have had no turn and are in no digest, oldest first."""
        where = "WHERE endpoint = ? AND began_at_ms = 0 AND digest = '' ORDER BY seq LIMIT ?"
        return self._queued(where, endpoint, limit)

    def waiting(self) -> dict[str, int]:
        """The number of messages that wait, by endpoint."""
        return dict(self._rows("SELECT endpoint, COUNT(*) FROM messages GROUP BY endpoint"))

    def drop_overtaken(self, endpoint: str) -> int:
        """Drop messages that ask for a decision on a hold that is now closed; a digest stays as it was first sent.

        Returns:
            The number of messages dropped.
        """
        return self._write(
            "DELETE FROM messages WHERE endpoint = ? AND asking = 1 AND digest = '' AND NOT EXISTS "
            "(SELECT 1 FROM holds WHERE holds.log_key = messages.log_key AND holds.hold_id = messages.hold_id)",
            endpoint,
        )

    def gather(self, found: Sequence[Queued], digest: str) -> None:
        """Make messages one digest from now on."""
        self._each("UPDATE messages SET digest = ? WHERE seq = ?", [(digest, queued.seq) for queued in found])

    def tried(self, found: Sequence[Queued], tries: int, began_at_ms: int, due_at_ms: int) -> None:
        """Store the number of failed tries, the time of the first, and when the next one is due."""
        self._each(
            "UPDATE messages SET tries = ?, began_at_ms = ?, due_at_ms = ? WHERE seq = ?",
            [(tries, began_at_ms, due_at_ms, queued.seq) for queued in found],
        )

    def done(self, found: Sequence[Queued]) -> None:
        """Delete messages that were accepted, or whose dead letters are in the log."""
        self._each("DELETE FROM messages WHERE seq = ?", [(queued.seq,) for queued in found])

    def drop_endpoint(self, endpoint: str) -> None:
        """Delete what waits for an endpoint that no longer exists."""
        self._write("DELETE FROM messages WHERE endpoint = ?", endpoint)

    def put_attempt(self, endpoint: str, at_ms: int, keep_since_ms: int) -> None:
        """Store the time of a try on an endpoint."""
        self._write("DELETE FROM attempts WHERE endpoint = ? AND at_ms < ?", endpoint, keep_since_ms)
        self._write("INSERT INTO attempts VALUES (?, ?)", endpoint, at_ms)

    def drop_attempt(self, endpoint: str, at_ms: int) -> None:
        """Delete one: the endpoint was not contacted after all."""
        self._write(
            "DELETE FROM attempts WHERE rowid = (SELECT max(rowid) FROM attempts WHERE endpoint = ? AND at_ms = ?)",
            endpoint,
            at_ms,
        )

    def attempts(self, endpoint: str, since_ms: int) -> list[int]:
        """The times of tries on an endpoint since a time, oldest first."""
        rows = self._rows(
            "SELECT at_ms FROM attempts WHERE endpoint = ? AND at_ms >= ? ORDER BY at_ms", endpoint, since_ms
        )
        return [int(row[0]) for row in rows]

    def _make(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version == 1:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {_FROM_VERSION_1} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            raise OutboxUnusable(
                f"The outbox {self._path} has version {version}, but this Placet supports {VERSION}: run the "
                "Placet that wrote it, or move the file away; the messages waiting in it are then not sent."
            )

    def _queued(self, where: str, *values: Any) -> list[Queued]:
        rows = self._rows(f"SELECT {_COLUMNS} FROM messages {where}", *values)  # noqa: S608 - our own words
        return [Queued(row[0], self._notices.decode(row[1]), *row[2:]) for row in rows]

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._db.execute(statement, values).fetchall()

    def _write(self, statement: str, *values: Any) -> int:
        with self._explained():
            return self._db.execute(statement, values).rowcount

    def _each(self, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
        with self.transaction():
            self._db.executemany(statement, values)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OutboxUnusable(
                f"The outbox {self._path} cannot be used ({error}): end the other process that uses it, or "
                "repair the disk."
            ) from error
        except (sqlite3.DatabaseError, msgspec.MsgspecError, OSError) as error:
            if is_damage(error) or isinstance(error, msgspec.MsgspecError):
                raise OutboxUnusable(damage_message(f"The outbox {self._path}", error, MEND)) from error
            raise OutboxUnusable(
                f"The outbox {self._path} cannot be used ({error}): see that its directory can be written."
            ) from error
