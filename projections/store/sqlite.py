"""The view in a SQLite file (WAL).

The configured path is a symbolic link to the file of the current generation; a rebuilt view is
swapped in by renaming a new link over it. A file itself is never renamed: SQLite finds the write-ahead log by
the file's name, and would mix the logs of two databases.
"""

import os
import sqlite3
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from eventsourcing.persistence import IntegrityError, PersistenceError, Tracking
from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore, SQLiteTrackingRecorder

from projections.store.layout import LAYOUT_STATEMENT, check_layout, layout_of
from projections.store.leftovers import Claim, remove_generation
from projections.store.port import (
    SETTING,
    Batch,
    Key,
    Move,
    Position,
    PositionConflict,
    ViewReplaced,
    ViewUnavailable,
    position_values,
)
from projections.store.sqlite_alone import alone_in
from projections.store.sqlite_connections import one_connection
from projections.store.sqlite_damage import unavailable, view_errors
from projections.store.statements import (
    Dialect,
    create_index_statements,
    create_statements,
    create_table_statements,
    insert_statement,
    move_position_statement,
    select_statement,
    upsert_statement,
)
from projections.store.tables import TABLES
from projections.tables.columns import R, Table, TableOf
from projections.tables.log import POSITIONS
from vitals.damage import check_integrity

DIALECT = Dialect(
    placeholder="?",
    types={"text": "TEXT", "int": "INTEGER", "real": "REAL", "bytes": "BLOB"},
    greatest="MAX",
)
LOCK_TIMEOUT_S = 30
NOTHING = (-1, -1)
ROWS_AT_ONCE = 1_000
# A commit that is lost in a power failure loses its offsets too: the records are read again.
_PRAGMAS = ("synchronous = NORMAL", "wal_autocheckpoint = 4000", "cache_size = -65536")
_FAST_PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "cache_size = -262144")


class _Recorder(SQLiteTrackingRecorder):
    """The tracking recorder with the view's tables beside its own."""

    def __init__(self, datastore: SQLiteDatastore, statements: list[str]) -> None:
        self._statements = statements
        super().__init__(datastore)

    def construct_create_table_statements(self) -> list[str]:
        return [*super().construct_create_table_statements(), *self._statements, LAYOUT_STATEMENT]

    def track(self, cursor: SQLiteCursor, position: Position) -> None:
        self._insert_tracking(cursor, Tracking(position.source, position.next_offset))


class SqliteViewStore:
    """A view in a SQLite file; one writer."""

    def __init__(self, path: Path, file: Path, *, fast: bool = False) -> None:
        """Open a generation's file.

        Args:
            path: the configured path, whose link is watched; the file itself if nothing is swapped.
            file: the generation's file; created with its tables if it is missing.
            fast: write without journal and indices; a crash, or a batch that fails, corrupts the file. `finish`
                adds what is missing.
        """
        self.path = path
        self.file = file
        make_private(file)
        self._datastore = one_connection(str(file), LOCK_TIMEOUT_S)
        statements = create_table_statements(DIALECT) if fast else create_statements(DIALECT)
        self._recorder = _Recorder(self._datastore, statements)
        self._inserts = {table.name: insert_statement(table, DIALECT) for table in TABLES}
        self._upserts = {table.name: upsert_statement(table, DIALECT) for table in TABLES}
        self._prepare(_FAST_PRAGMAS if fast else _PRAGMAS)
        self._identity = identity(path)

    def positions(self) -> list[Position]:
        """See `ViewStore`."""
        with self._reading() as connection:
            return _positions(connection)

    def tracked(self, position: Position) -> int | None:
        """See `ViewStore`."""
        with view_errors(self.path, "could not be read"):
            return self._recorder.max_tracking_id(position.source)

    def load(self, table: TableOf[R], keys: Sequence[Key], through: int | None = None) -> list[R]:
        """See `ViewStore`."""
        where = " AND ".join(f'"{name}" = ?' for name in table.key)
        statement = select_statement(table, DIALECT, f"WHERE {where}")
        with self._reading() as connection:
            found = [connection.execute(statement, key).fetchone() for key in keys]
        return [table.made(row) for row in found if row is not None]

    def apply(self, batch: Batch) -> None:
        """See `ViewStore`."""
        if identity(self.path) != self._identity:
            raise ViewReplaced(f"The view at {self.path} was swapped for a rebuilt one: open it again.")
        try:
            with self._datastore.transaction(commit=True) as cursor:
                # The first statement writes, so that the transaction never has to be upgraded from a read.
                for move in batch.moves:
                    self._move(cursor, move)
                self._write(cursor, batch)
        except IntegrityError as error:
            raise PositionConflict(
                f"The view at {self.path} holds a record of this batch already."
            ) from error
        except (PersistenceError, sqlite3.Error) as error:
            raise unavailable(self.path, "could not be written", error) from error

    @contextmanager
    def snapshot(self) -> Iterator["SqliteReader"]:
        """See `ViewStore`."""
        with closing(connect(self.file)) as connection:
            connection.execute("BEGIN")
            yield SqliteReader(connection, self.path)

    def close(self) -> None:
        """See `ViewStore`."""
        self._datastore.close()

    def _prepare(self, pragmas: tuple[str, ...]) -> None:
        with view_errors(self.path, "cannot be opened"):
            with self._datastore.get_connection(commit=True) as connection:
                for pragma in pragmas:
                    connection.cursor().execute(f"PRAGMA {pragma}")
            self._check_earlier_layout()
            self._recorder.create_table()
        with self._reading() as connection:
            stored = connection.execute("SELECT layout FROM placet_layout").fetchone()
            if stored is None:
                connection.execute("INSERT INTO placet_layout VALUES (?)", (layout_of(DIALECT),))
            else:
                check_layout(stored[0], DIALECT, str(self.path))

    def _check_earlier_layout(self) -> None:
        """Refuse the tables of another version before indices are made, which can be of columns that they lack."""
        with self._datastore.get_connection(commit=False) as connection:
            has_tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'placet_layout'"
            found = connection._sqlite_conn.execute(has_tables).fetchone()
            stored = found and connection._sqlite_conn.execute("SELECT layout FROM placet_layout").fetchone()
        if stored:
            check_layout(stored[0], DIALECT, str(self.path))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with (
            view_errors(self.path, "could not be read"),
            self._datastore.get_connection(commit=False) as connection,
        ):
            yield connection._sqlite_conn

    def _move(self, cursor: SQLiteCursor, move: Move) -> None:
        after = move.after
        if move.before is None:
            cursor.execute(insert_statement(POSITIONS, DIALECT), position_values(after))
        else:
            where = (after.source, move.before.next_offset)
            values = (after.next_offset, after.claim, after.record_id, *where)
            cursor.execute(move_position_statement(DIALECT), values)
            if cursor.sqlite_cursor.rowcount != 1:
                raise PositionConflict(f"Another projector moved {after.source} in the view at {self.path}.")
        self._recorder.track(cursor, after)

    def _write(self, cursor: SQLiteCursor, batch: Batch) -> None:
        for statements, tables in ((self._inserts, batch.inserts), (self._upserts, batch.upserts)):
            for name, rows in tables.items():
                if rows:
                    cursor.executemany(statements[name], rows)


class SqliteReader:
    """One snapshot of a SQLite view."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def positions(self) -> list[Position]:
        """See `ViewReader`."""
        with view_errors(self._path, "could not be read"):
            return _positions(self._connection)

    def rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """See `ViewReader`."""
        order = ", ".join(f'"{name}"' for name in table.key)
        with view_errors(self._path, "could not be read"):
            found = self._connection.execute(select_statement(table, DIALECT, f"ORDER BY {order}"))
            # Not from the cursor itself: a reader that leaves early would close it, perhaps after its connection.
            while rows := found.fetchmany(ROWS_AT_ONCE):
                yield from rows


def connect(file: Path) -> sqlite3.Connection:
    """A connection that only reads; statements commit by themselves and can run in any thread.

    Raises:
        ViewUnavailable: there is no such file.
    """
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(file))}?mode=rw",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=LOCK_TIMEOUT_S,
        )
    except sqlite3.Error as error:
        raise ViewUnavailable(f"There is no view at {file} yet: start the projector.") from error
    connection.execute("PRAGMA query_only = ON")
    return connection


def check_sound(path: Path) -> None:
    """Read the whole view at a configured path, if there is one.

    Raises:
        ViewDamaged: it is damaged.
        ViewUnavailable: it cannot be read.
    """
    if identity(path) != NOTHING:
        with view_errors(path, "could not be read"), closing(connect(path)) as connection:
            check_integrity(connection)


def open_current(path: Path) -> SqliteViewStore:
    """The view at a configured path; a first generation is created if there is none.

    Raises:
        ViewUnavailable: it cannot be opened or created.
        ViewOutdated: another version of Placet built it.
    """
    _make_directory(path)
    try:
        # Other processes never see a generation that is named but not created, or that has only some of its tables.
        with alone_in(path.parent, LOCK_TIMEOUT_S):
            if identity(path) == NOTHING:
                swap_in(new_generation(path), path)
            return SqliteViewStore(path, path.resolve())
    except OSError as error:
        raise ViewUnavailable(f"The view at {path} cannot be opened: {error.strerror or error}") from error


def make_private(file: Path) -> None:
    """Create a generation's file so that only its owner can use it, whatever the umask; new logs take its mode.

    Raises:
        ViewUnavailable: it cannot be created.
    """
    try:
        # An existing file is never opened: closing it would release the locks that this process has on it.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        for suffix in ("", "-wal", "-shm"):
            _take_from_others(file.with_name(file.name + suffix))
    except OSError as error:
        raise ViewUnavailable(f"The view at {file} cannot be created: {error.strerror or error}") from error


def _take_from_others(file: Path) -> None:
    with suppress(FileNotFoundError):
        found = file.stat()
        if found.st_mode & 0o077 and found.st_uid == os.geteuid():
            file.chmod(stat.S_IMODE(found.st_mode) & ~0o077)


def new_generation(path: Path) -> Path:
    """The name of a file for a new generation of the view at a path."""
    return path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}")


def claim(file: Path) -> Claim:
    """Mark a generation as being built, before its file is created; its directory is created.

    Raises:
        ViewUnavailable: the disk is full, or the directory cannot be written.
    """
    _make_directory(file)
    try:
        return Claim(file)
    except OSError as error:
        raise _cannot_be_made_in(file.parent, error) from error


def _make_directory(file: Path) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_be_made_in(file.parent, error) from error


def _cannot_be_made_in(directory: Path, error: OSError) -> ViewUnavailable:
    return ViewUnavailable(f"A view cannot be created in {directory}: {error.strerror or error}")


def swap_in(file: Path, path: Path) -> None:
    """Point the configured path to another generation, at once for all new readers."""
    link = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.link")
    link.symlink_to(file.name)
    os.replace(link, path)


def replace_with(file: Path, path: Path, replaced: tuple[int, int]) -> None:
    """Swap a rebuilt generation in and remove the previous one; readers of the previous one are not disturbed.

    Raises:
        ViewReplaced: the path points to another generation than the one to be replaced.
    """
    if identity(path) != replaced:
        raise ViewReplaced(f"The view at {path} was swapped by another rebuild meanwhile.")
    before = path.resolve() if path.exists() else None
    finish(file)
    swap_in(file, path)
    if before is not None and before != path:
        remove_generation(before)


def finish(file: Path) -> None:
    """Complete a file that was written fast: add indices and the write-ahead log, and sync it to the disk.

    Raises:
        ViewUnavailable: it cannot be written.
    """
    with view_errors(file, "could not be written"), closing(connect(file)) as connection:
        connection.execute("PRAGMA query_only = OFF")
        for statement in create_index_statements(DIALECT):
            connection.execute(statement)
        connection.execute("PRAGMA journal_mode = WAL")
    with file.open("rb") as written:
        os.fsync(written.fileno())


def _positions(connection: sqlite3.Connection) -> list[Position]:
    return [
        Position(*row[1:]) for row in map(tuple, connection.execute(select_statement(POSITIONS, DIALECT)))
    ]


def identity(path: Path) -> tuple[int, int]:
    """The identity of the generation that a path points to now; `NOTHING` for none.

    Raises:
        ViewUnavailable: the path is not a file, but for example a directory that a container runtime mounted.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "not a file"
        raise ViewUnavailable(
            f"{path} is {what}, but must be the file of a view: move it away, or set another path in {SETTING}."
        )
    return found.st_dev, found.st_ino
