"""The vault in a separate schema of a PostgreSQL database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from gateway.vault.store import CLOSE_WITHIN_S, WITHIN_S, VaultSilent, VaultUnavailable
from projections.store.bounded import BoundedConnection
from projections.store.port import DatabaseRefuses, DatabaseUnfit, ViewUnavailable
from projections.store.postgres import connect

# The server's limits: a gateway that is frozen or cut off in a transaction must not keep its locks from the others.
_LIMITS = """
    SELECT set_config('statement_timeout', %(ms)s, true),
           set_config('idle_in_transaction_session_timeout', %(ms)s, true)
"""
CONNECT_WITHIN_S = 2
SHRED_WITHIN_S = 60.0
LETS_NOBODY_IN = (
    "the vault cannot be used: its database refuses the connection; check the user, the password and the name of "
    "the database in DATABASE_URL"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"

Connection = BoundedConnection[tuple[Any, ...]]


class PostgresVaultDatabase:
    """A schema, used over one connection, which is opened again if it was lost."""

    def __init__(self, url: str, schema: str, tables: Sequence[str]) -> None:
        """Open the schema; it is created with its tables if it is missing.

        Args:
            url: the database's, without the parameter `schema`.
            schema: its name; it contains no views.
            tables: statements that create the tables, containing `{prefix}` and `{bytes}`.

        Raises:
            VaultSilent: the database does not answer now.
            VaultUnavailable: it refuses the connection, or its encoding is not UTF8.
        """
        self._url = url
        self._schema = schema
        self._lock = threading.Lock()
        self._is_closing = False
        self._connection: Connection | None = None
        self._shredding: set[Connection] = set()
        with self.transaction("", alone=True) as execute:
            execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)), ())
            execute(SQL("REVOKE ALL ON SCHEMA {} FROM PUBLIC").format(Identifier(schema)), ())
            for table in tables:
                execute(SQL(table.format(prefix=f'"{schema}".', bytes="BYTEA")), ())

    @contextmanager
    def transaction(
        self, subject: str, *, alone: bool = False, within_s: float = WITHIN_S
    ) -> Iterator[Callable[[Any, Sequence[Any]], list[tuple[Any, ...]]]]:
        """See `VaultDatabase`."""
        ends_at = time.monotonic() + within_s
        with self._turn(within_s):
            try:
                connection = self._connected()
                connection.ends_at = ends_at
                with connection.transaction():
                    connection.execute(_LIMITS, {"ms": str(int(within_s * 1000))})
                    connection.execute(_LOCK if alone else _LOCK_SHARED, (self._schema,))
                    connection.execute(_LOCK, (f"{self._schema}\x1f{subject}",))
                    if self._has_schema(connection):
                        connection.execute(
                            SQL("SET LOCAL search_path TO {}").format(Identifier(self._schema))
                        )
                    yield lambda statement, values: _rows(connection, statement, values)
            except psycopg.Error as error:
                self._let_go()
                detail = f"the vault cannot be used now: {type(error).__name__}"
                # An answer of the database, such as a missing permission, would be the same again.
                is_silent = isinstance(error, psycopg.OperationalError)
                raise (VaultSilent if is_silent else VaultUnavailable)(detail) from error

    def shred(self) -> None:
        """See `VaultDatabase`: old versions of rows stay in the table until it is vacuumed.

        That takes time in proportion to the table's size, so it uses a connection of its own.
        """
        connection = self._opened()
        self._shredding.add(connection)
        try:
            for table in ("sealed", "data_keys"):
                connection.ends_at = time.monotonic() + SHRED_WITHIN_S
                connection.execute(SQL("VACUUM {}").format(Identifier(self._schema, table)))
        except psycopg.Error as error:
            raise VaultUnavailable(f"the vault cannot be cleaned: {type(error).__name__}") from error
        finally:
            self._shredding.discard(connection)
            connection.close()

    def close(self) -> None:
        """See `VaultDatabase`."""
        self._is_closing = True
        is_idle = self._lock.acquire(timeout=CLOSE_WITHIN_S)
        for connection in (self._connection, *tuple(self._shredding)):
            if connection is not None:
                connection.given_up = True
        # A thread that still uses a connection closes it itself.
        if is_idle:
            try:
                self._let_go()
            finally:
                self._lock.release()

    @contextmanager
    def _turn(self, within_s: float) -> Iterator[None]:
        """Use the one connection, one transaction at a time."""
        if not self._lock.acquire(timeout=within_s):
            raise VaultSilent("the vault cannot be used now: its database has not answered in time")
        try:
            yield
        finally:
            self._lock.release()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._opened()
        return self._connection

    def _opened(self) -> Connection:
        if self._is_closing:
            raise VaultUnavailable("the vault is closed: this process is ending")
        try:
            return connect(self._url, CONNECT_WITHIN_S)
        except DatabaseUnfit as error:
            raise VaultUnavailable(str(error)) from error
        # Callers get this text; the database's address is not for them.
        except DatabaseRefuses as error:
            raise VaultUnavailable(LETS_NOBODY_IN) from error
        except ViewUnavailable as error:
            raise VaultSilent("the vault cannot be used now: its database does not answer") from error

    def _has_schema(self, connection: Connection) -> bool:
        found = connection.execute(
            "SELECT to_regnamespace(%s) IS NOT NULL", (f'"{self._schema}"',)
        ).fetchone()
        return found is not None and bool(found[0])


def _rows(connection: Connection, statement: Any, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    query = statement if isinstance(statement, Composed | SQL) else SQL(statement.replace("?", "%s"))
    cursor = connection.execute(query, values or None)
    return [] if cursor.description is None else cursor.fetchall()
