"""The vault in a schema of its own of a PostgreSQL database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from projections.store.port import DatabaseUnfit, ViewUnavailable
from projections.store.postgres import connect

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"


class PostgresVaultDatabase:
    """A schema; one connection, opened anew when it was lost."""

    def __init__(
        self, url: str, schema: str, tables: Sequence[str], unavailable: Callable[[str], Exception]
    ) -> None:
        """Open it, made with its tables where it is missing.

        Args:
            url: of the database, without the parameter `schema`.
            schema: its name; no view has it.
            tables: statements that make the tables, with `{prefix}` and `{bytes}` in them.
            unavailable: makes the error of a database that does not answer, or is not of the encoding UTF8.
        """
        self._url = url
        self._schema = schema
        self._unavailable = unavailable
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        with self.transaction("", alone=True) as execute:
            execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)), ())
            execute(SQL("REVOKE ALL ON SCHEMA {} FROM PUBLIC").format(Identifier(schema)), ())
            for table in tables:
                execute(SQL(table.format(prefix=f'"{schema}".', bytes="BYTEA")), ())

    @contextmanager
    def transaction(
        self, subject: str, *, alone: bool = False
    ) -> Iterator[Callable[[Any, Sequence[Any]], list[tuple[Any, ...]]]]:
        """See `VaultDatabase`."""
        with self._lock:
            try:
                connection = self._connected()
                with connection.transaction():
                    connection.execute(_LOCK if alone else _LOCK_SHARED, (self._schema,))
                    connection.execute(_LOCK, (f"{self._schema}\x1f{subject}",))
                    if self._has_schema(connection):
                        connection.execute(
                            SQL("SET LOCAL search_path TO {}").format(Identifier(self._schema))
                        )
                    yield lambda statement, values: _rows(connection, statement, values)
            except psycopg.Error as error:
                self._connection = None
                raise self._unavailable(f"the vault cannot be used now: {type(error).__name__}") from error

    def shred(self) -> None:
        """See `VaultDatabase`: rows as they were before stay in the table until it is cleaned."""
        with self._lock:
            try:
                self._connected().execute(SQL("VACUUM {}.sealed").format(Identifier(self._schema)))
                self._connected().execute(SQL("VACUUM {}.data_keys").format(Identifier(self._schema)))
            except psycopg.Error as error:
                self._connection = None
                raise self._unavailable(f"the vault cannot be cleaned: {type(error).__name__}") from error

    def close(self) -> None:
        """See `VaultDatabase`."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            try:
                self._connection = connect(self._url)
            except DatabaseUnfit as error:
                raise self._unavailable(str(error)) from error
            except ViewUnavailable as error:
                # Callers are told this; where the database is, is nothing to them.
                raise self._unavailable(
                    "the vault cannot be used now: its database does not answer"
                ) from error
        return self._connection

    def _has_schema(self, connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
        found = connection.execute(
            "SELECT to_regnamespace(%s) IS NOT NULL", (f'"{self._schema}"',)
        ).fetchone()
        return found is not None and bool(found[0])


def _rows(
    connection: psycopg.Connection[tuple[Any, ...]], statement: Any, values: Sequence[Any]
) -> list[tuple[Any, ...]]:
    query = statement if isinstance(statement, Composed | SQL) else SQL(statement.replace("?", "%s"))
    cursor = connection.execute(query, values or None)
    return [] if cursor.description is None else cursor.fetchall()
