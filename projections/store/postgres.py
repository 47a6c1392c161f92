"""The view in a schema of a PostgreSQL database.

A rebuilt view is a schema beside the live one; the swap renames both in one transaction, and in the same one
redefines the views that analysts read (see `facade`) on the new tables. Batches take a shared advisory lock and the
swap takes it exclusively, so that no batch runs across it.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from eventsourcing.persistence import IntegrityError, PersistenceError, Tracking
from eventsourcing.postgres import PostgresDatastore, PostgresTrackingRecorder
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composed, Identifier

from projections.store import facade
from projections.store.bounded import (
    CONNECT_TIMEOUT_S,
    BoundedConnection,
    connect_timeout,
    network_settings,
)
from projections.store.encoding import ENCODING, check_encoding
from projections.store.layout import LAYOUT_STATEMENT, check_layout, layout_of
from projections.store.offered import MOMENT
from projections.store.port import (
    Batch,
    DatabaseRefuses,
    DatabaseUnfit,
    Key,
    Move,
    Position,
    PositionConflict,
    ViewHeld,
    ViewReplaced,
    ViewUnavailable,
    position_values,
)
from projections.store.postgres_address import DEFAULT_SCHEMA, read_url
from projections.store.refused import is_refused
from projections.store.statements import (
    Dialect,
    create_statements,
    insert_statement,
    keyed_statement,
    move_position_statement,
    select_statement,
    upsert_statement,
)
from projections.store.tables import TABLES
from projections.tables.columns import R, Table, TableOf
from projections.tables.log import POSITIONS

# The session settings of a batch. A commit that is lost in a crash loses its offsets too.
_BEGIN = "SET LOCAL synchronous_commit = off"
_SHARED_LOCK = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_IDENTITY = "SELECT COALESCE(to_regnamespace(%s)::oid::bigint, -1) AS oid"
FETCH_ROWS = 2000
KEYS_AT_ONCE = 500


def dialect_of(schema: str) -> Dialect:
    """The dialect with this schema in front of every table name."""
    return Dialect(
        placeholder="%s",
        # Text is ordered by its bytes, as in SQLite, whatever the database's locale.
        types={"text": 'TEXT COLLATE "C"', "int": "BIGINT", "real": "DOUBLE PRECISION", "bytes": "BYTEA"},
        greatest="GREATEST",
        moment=MOMENT,
        prefix=f'"{schema}".',
    )


def connect(url: str, within_s: int = CONNECT_TIMEOUT_S) -> BoundedConnection[tuple[Any, ...]]:
    """A connection; statements commit by themselves.

    Args:
        url: without the parameter `schema`.
        within_s: how long to wait for it, if the URL does not say; a shorter time than usual holds in any case.

    Raises:
        ViewUnavailable: no server answers.
        DatabaseRefuses: the server answers, but refuses the connection with this URL.
        DatabaseUnfit: the URL cannot be read, or the database is not of the encoding UTF8.
    """
    given = read_url(url)
    try:
        found = BoundedConnection[tuple[Any, ...]].connect(
            url,
            autocommit=True,
            row_factory=tuple_row,
            client_encoding=ENCODING,
            # If no server answers at all, TCP itself gives up only after minutes.
            connect_timeout=connect_timeout(given, within_s),
            **network_settings(given),
        )
    except psycopg.Error as error:
        if is_refused(error):
            raise DatabaseRefuses(f"The database refuses the connection: {error}".strip()) from error
        raise ViewUnavailable(f"The database does not answer: {error}".strip()) from error
    try:
        check_encoding(found)
    except DatabaseUnfit:
        found.close()
        raise
    return found


class _Recorder(PostgresTrackingRecorder):
    """The tracking recorder with the view's tables beside its own."""

    def __init__(self, datastore: PostgresDatastore, dialect: Dialect) -> None:
        super().__init__(datastore, tracking_table_name="tracking")
        layout = LAYOUT_STATEMENT.replace("placet_layout", f"{dialect.prefix}placet_layout")
        self.sql_create_statements += [as_sql(text) for text in (*create_statements(dialect), layout)]

    def track(self, cursor: psycopg.Cursor[Any], position: Position) -> None:
        self._insert_tracking(cursor, Tracking(position.source, position.next_offset))


class PostgresViewStore:
    """A view in a schema; one writer."""

    def __init__(self, url: str, schema: str, shown_as: str = "") -> None:
        """Open a view.

        Args:
            url: of the database, without the parameter `schema`.
            schema: the schema of the tables; created with them if it is missing.
            shown_as: the schema that analysts read; empty for a view that is still being rebuilt.
        """
        self.url = url
        self.schema = schema
        self._dialect = dialect_of(schema)
        self._make_schema(shown_as)
        self._datastore = _datastore(url, schema)
        with self._opening_alone():
            # The recorder looks for its tables, and `_prepare` makes those that it did not find.
            self._recorder = _Recorder(self._datastore, self._dialect)
            self._identity = self._prepare()
        self._inserts = {table.name: as_sql(insert_statement(table, self._dialect)) for table in TABLES}
        self._upserts = {table.name: as_sql(upsert_statement(table, self._dialect)) for table in TABLES}
        self._move_statement = as_sql(move_position_statement(self._dialect))
        if shown_as:
            self._show_as(shown_as)

    def positions(self) -> list[Position]:
        """See `ViewStore`."""
        statement = as_sql(select_statement(POSITIONS, self._dialect))
        return [Position(*tuple(row.values())[1:]) for row in self._read(statement)]

    def tracked(self, position: Position) -> int | None:
        """See `ViewStore`."""
        found: int | None = self._recorder.max_tracking_id(position.source)
        return found

    def load(self, table: TableOf[R], keys: Sequence[Key], through: int | None = None) -> list[R]:
        """See `ViewStore`."""
        found: list[R] = []
        for begin in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[begin : begin + KEYS_AT_ONCE]
            statement = as_sql(keyed_statement(table, self._dialect, len(some)))
            found += self._read(statement, [value for key in some for value in key])
        return found

    def apply(self, batch: Batch) -> None:
        """See `ViewStore`."""
        try:
            with self._datastore.transaction(commit=True) as cursor:
                cursor.execute(_BEGIN)
                cursor.execute(_SHARED_LOCK, (self.schema,))
                if self._identity_now(cursor) != self._identity:
                    raise ViewReplaced(
                        f"The view {self.schema} was swapped for a rebuilt one: open it again."
                    )
                for move in batch.moves:
                    self._move(cursor, move)
                self._write(cursor, batch)
        except IntegrityError as error:
            raise PositionConflict(f"The view {self.schema} has a record of this batch already.") from error
        except (PersistenceError, psycopg.Error) as error:
            raise ViewUnavailable(f"The view {self.schema} could not be written: {error}") from error

    @contextmanager
    def snapshot(self) -> Iterator["PostgresReader"]:
        """See `ViewStore`."""
        with connect(self.url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                yield PostgresReader(connection, self._dialect)

    def close(self) -> None:
        """See `ViewStore`."""
        self._datastore.close()

    def _make_schema(self, shown_as: str) -> None:
        try:
            with connect(self.url) as connection, connection.transaction():
                connection.execute(_LOCK, (self.schema,))
                if shown_as:
                    facade.move_old_tables(connection, shown_as)
                connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(self.schema)))
        except psycopg.Error as error:
            raise ViewUnavailable(f"The view {self.schema} cannot be created: {error}") from error

    @contextmanager
    def _opening_alone(self) -> Iterator[None]:
        """Keep others that open this view, such as a rebuild beside a new projector, from making its tables too."""
        try:
            with connect(self.url) as connection, connection.transaction():
                connection.execute(_LOCK, (self.schema,))
                yield
        except psycopg.Error as error:
            raise ViewUnavailable(f"The view {self.schema} cannot be opened: {error}") from error

    def _prepare(self) -> int:
        try:
            self._check_earlier_layout()
            self._recorder.create_table()
            with self._datastore.transaction(commit=True) as cursor:
                self._check_layout(cursor)
                return self._identity_now(cursor)
        except (PersistenceError, psycopg.Error) as error:
            raise ViewUnavailable(f"The view {self.schema} cannot be opened: {error}") from error

    def _check_earlier_layout(self) -> None:
        """Refuse the tables of another version before its SQL views are replaced, which can have other columns."""
        with self._datastore.transaction(commit=True) as cursor:
            name = f'"{self.schema}".placet_layout'
            found = cursor.execute("SELECT to_regclass(%s) IS NOT NULL AS is_there", (name,)).fetchone()
            if found is not None and found["is_there"]:
                self._check_layout(cursor)

    def _show_as(self, shown_as: str) -> None:
        try:
            with connect(self.url) as connection, connection.transaction():
                if not facade.is_current(connection, shown_as):
                    connection.execute(_LOCK, (self.schema,))
                    facade.refresh(connection, shown_as)
        except psycopg.Error as error:
            raise ViewUnavailable(f"The views in {shown_as} cannot be created: {error}") from error

    def _check_layout(self, cursor: psycopg.Cursor[Any]) -> None:
        table = Identifier(self.schema, "placet_layout")
        stored = cursor.execute(SQL("SELECT layout FROM {}").format(table)).fetchone()
        plain = dialect_of(DEFAULT_SCHEMA)
        if stored is None:
            cursor.execute(SQL("INSERT INTO {} VALUES (%s)").format(table), (layout_of(plain),))
        else:
            check_layout(stored["layout"], plain, self.schema)

    def _identity_now(self, cursor: psycopg.Cursor[Any]) -> int:
        found: Mapping[str, Any] = cursor.execute(_IDENTITY, (f'"{self.schema}"',)).fetchall()[0]
        return int(found["oid"])

    def _read(self, statement: Composed, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._datastore.get_connection() as connection, connection.cursor() as cursor:
                return cursor.execute(statement, parameters).fetchall()
        except (PersistenceError, psycopg.Error) as error:
            raise ViewUnavailable(f"The view {self.schema} could not be read: {error}") from error

    def _move(self, cursor: psycopg.Cursor[Any], move: Move) -> None:
        after = move.after
        if move.before is None:
            cursor.execute(self._inserts[POSITIONS.name], position_values(after))
        else:
            where = (after.source, move.before.next_offset)
            cursor.execute(self._move_statement, (after.next_offset, after.claim, after.record_id, *where))
            if cursor.rowcount != 1:
                raise PositionConflict(f"Another projector moved {after.source} in the view {self.schema}.")
        self._recorder.track(cursor, after)

    def _write(self, cursor: psycopg.Cursor[Any], batch: Batch) -> None:
        for statements, tables in ((self._inserts, batch.inserts), (self._upserts, batch.upserts)):
            for name, rows in tables.items():
                if rows:
                    cursor.executemany(statements[name], rows)


class PostgresReader:
    """One snapshot of a PostgreSQL view."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def positions(self) -> list[Position]:
        """See `ViewReader`."""
        rows = self._connection.execute(as_sql(select_statement(POSITIONS, self._dialect))).fetchall()
        return [Position(*row[1:]) for row in rows]

    def rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """See `ViewReader`."""
        order = ", ".join(f'"{name}"' for name in table.key)
        with self._connection.cursor(name=f"placet_{table.name}") as cursor:
            cursor.itersize = FETCH_ROWS
            yield from cursor.execute(as_sql(select_statement(table, self._dialect, f"ORDER BY {order}")))


def new_generation(schema: str) -> str:
    """The name of a schema for a new generation of a view."""
    return f"{schema}_{uuid.uuid4().hex[:12]}"


def swap_in(url: str, rebuilt: str, shown_as: str, replaced: int, *, force: bool = False) -> None:
    """Make the rebuilt view the live one, at once for all readers and writers; the old one is dropped.

    Args:
        url: of the database.
        rebuilt: the schema with the rebuilt view.
        shown_as: the schema in which analysts read the live view.
        replaced: the identity of the live view that it replaces; −1 for none.
        force: swap even if objects of others are lost.

    Raises:
        ViewReplaced: another view has that name by now.
        ViewHeld: objects of others would be lost, or a query reads the old view for too long.
    """
    schema = facade.data_schema(shown_as)
    old = new_generation(schema)
    rename = SQL("ALTER SCHEMA {} RENAME TO {}")
    try:
        with connect(url) as connection, connection.transaction():
            connection.execute(_LOCK, (schema,))
            connection.execute(SQL("SET LOCAL lock_timeout = {}").format(facade.LOCK_TIMEOUT))
            if _identity_of(connection, schema) != replaced:
                raise ViewReplaced(f"The view {schema} was swapped by another rebuild meanwhile.")
            if not force:
                _check_losses(connection, shown_as, rebuilt)
            if replaced != -1:
                connection.execute(rename.format(Identifier(schema), Identifier(old)))
            connection.execute(rename.format(Identifier(rebuilt), Identifier(schema)))
            facade.refresh(connection, shown_as)
            connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(old)))
    except psycopg.errors.LockNotAvailable as error:
        raise ViewHeld(
            f"a query has read the views in {shown_as} for {facade.LOCK_TIMEOUT}: wait until it ends, and try again"
        ) from error


def check_losses(url: str, shown_as: str, rebuilt: str) -> None:
    """Check early whether a swap would lose objects of others.

    Raises:
        ViewHeld: it would; the message lists them.
    """
    with connect(url) as connection:
        _check_losses(connection, shown_as, rebuilt)


def _check_losses(connection: psycopg.Connection[tuple[Any, ...]], shown_as: str, rebuilt: str) -> None:
    if found := facade.losses(connection, shown_as, rebuilt):
        listed = "\n".join(f"  {one}" for one in found)
        raise ViewHeld(f"the swap would remove what others have created; --force swaps anyway:\n{listed}")


def schema_identity(url: str, schema: str) -> int:
    """The identity of the schema that has this name now; −1 for none."""
    with connect(url) as connection:
        return _identity_of(connection, schema)


def _identity_of(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> int:
    return int(connection.execute(_IDENTITY, (f'"{schema}"',)).fetchall()[0][0])


def drop(url: str, schema: str) -> None:
    """Remove a rebuilt view that is not needed."""
    with connect(url) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))


def _datastore(url: str, schema: str) -> PostgresDatastore:
    info = read_url(url)
    dbname, host, port, user, password = (
        str(info.pop(name, "") or "") for name in ("dbname", "host", "port", "user", "password")
    )
    datastore = PostgresDatastore(dbname, host, port, user, password, schema=schema, pool_size=1)
    # The rest of the URL (TLS, timeouts) goes to the driver unchanged.
    limits = {"connect_timeout": connect_timeout(info), **network_settings(info)}
    cast("dict[str, Any]", datastore.pool.kwargs).update(info | limits | {"client_encoding": ENCODING})
    return datastore


def as_sql(text: str) -> Composed:
    """A statement from text that contains only names in `tables`; values are always parameters."""
    return Composed([SQL(text)])
