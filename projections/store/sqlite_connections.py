"""Connections that cache their prepared statements, for the recorder of `eventsourcing`."""

import sqlite3

from eventsourcing.persistence import InterfaceError
from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool, SQLiteDatastore

# A batch has a statement for each table, and one or two for each partition. `eventsourcing` lets a connection
# cache only one, so that each would be parsed again in every batch.
STATEMENTS = 128


class _Pool(SQLiteConnectionPool):
    def _create_connection(self) -> SQLiteConnection:
        try:
            connection = sqlite3.connect(
                self.db_name,
                uri=True,
                check_same_thread=False,
                isolation_level=None,
                cached_statements=STATEMENTS,
                timeout=self.lock_timeout or 0,
            )
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise InterfaceError(error) from error
        connection.row_factory = sqlite3.Row
        return SQLiteConnection(connection, max_age=self.max_age)


def one_connection(db_name: str, timeout_s: int) -> SQLiteDatastore:
    """A datastore with one connection, which waits `timeout_s` at most for a lock and for its turn."""
    datastore = SQLiteDatastore(db_name)
    datastore.pool = _Pool(
        db_name=db_name, lock_timeout=timeout_s, pool_size=1, max_overflow=0, pool_timeout=timeout_s
    )
    return datastore
