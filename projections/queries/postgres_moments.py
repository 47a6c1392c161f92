"""Moments of a PostgreSQL view."""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from projections.queries.moment import Moment
from projections.store.bounded import BoundedConnection, connect_timeout, network_settings
from projections.store.encoding import ENCODING, check_encoding
from projections.store.layout import check_layout
from projections.store.port import ViewUnavailable
from projections.store.postgres import as_sql, dialect_of
from projections.store.postgres_address import DEFAULT_SCHEMA

Connection = BoundedConnection[tuple[Any, ...]]
TIMEOUT_S = 5.0
CONNECT_WITHIN_S = 3
# The longest query is answered in far less; a database that is silent for this long is frozen.
SILENT_MAX_S = 20.0
# A query starts a connection attempt at once: the pool's own attempts grow apart while the database is away.
RECONNECT_S = 0.1
CLOSE_WITHIN_S = 0.3
# A stream of rows has so many in memory, of up to some 300 KB each.
ROWS_AT_ONCE = 16


class PostgresMoments:
    """A pool of connections; a moment is a read-only REPEATABLE READ transaction."""

    def __init__(self, url: str, schema: str, connections: int) -> None:
        self._schema = schema
        self._dialect = dialect_of(schema)
        self._is_checked = False
        self._is_closing = False
        self._in_use: set[Connection] = set()
        given = conninfo_to_dict(url)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            connection_class=Connection,
            kwargs={
                "row_factory": tuple_row,
                "client_encoding": ENCODING,
                "connect_timeout": connect_timeout(given, CONNECT_WITHIN_S),
                **network_settings(given),
            },
            configure=_configure,
            min_size=1,
            max_size=connections,
            timeout=TIMEOUT_S,
            reconnect_timeout=RECONNECT_S,
            open=False,
        )

    @contextmanager
    def moment(self) -> Iterator[Moment]:
        """See `Source`."""
        self._pool.open()
        try:
            with self._pool.connection() as connection, self._used(connection):
                check_encoding(connection)
                moment = Moment(self._dialect, partial(_execute, connection), partial(_stream, connection))
                self._check(moment)
                yield moment
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise ViewUnavailable(f"There is no view in {self._schema} yet: start the projector.") from error
        except (psycopg.Error, PoolTimeout) as error:
            raise ViewUnavailable(f"The view {self._schema} could not be read: {error}") from error

    def close(self) -> None:
        """See `Source`: readers that still wait for the database get an error that it does not answer."""
        self._is_closing = True
        for connection in tuple(self._in_use):
            connection.given_up = True
        self._pool.close(CLOSE_WITHIN_S)

    @contextmanager
    def _used(self, connection: Connection) -> Iterator[None]:
        self._in_use.add(connection)
        connection.given_up = self._is_closing
        try:
            yield
        finally:
            self._in_use.discard(connection)
            # The pool itself may have to roll the transaction back.
            connection.ends_at = time.monotonic() + SILENT_MAX_S

    def _check(self, moment: Moment) -> None:
        if self._is_checked:
            return
        stored = moment.execute(f"SELECT layout FROM {self._dialect.prefix}placet_layout", ())  # noqa: S608
        if not stored:
            raise ViewUnavailable(f"The view {self._schema} is being created: try again in a moment.")
        check_layout(stored[0][0], dialect_of(DEFAULT_SCHEMA), self._schema)
        self._is_checked = True


def _configure(connection: Connection) -> None:
    connection.ends_at = time.monotonic() + SILENT_MAX_S
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True


def _execute(connection: Connection, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    connection.ends_at = time.monotonic() + SILENT_MAX_S
    return connection.execute(as_sql(text), values).fetchall()


def _stream(
    connection: Connection, text: str, values: Sequence[Any]
) -> Generator[tuple[Any, ...], None, None]:
    connection.ends_at = time.monotonic() + SILENT_MAX_S
    # The server keeps the rows: a plain query would send all of them.
    with connection.cursor(name="placet_stream") as cursor:
        cursor.execute(as_sql(text), values)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield from rows
            connection.ends_at = time.monotonic() + SILENT_MAX_S
