"""The database of sealed values: a SQLite file beside the views, or a PostgreSQL schema beside theirs.

Neither is a view: its content cannot be rebuilt from the log. So it has its own file and its own schema, which no
rebuild writes and no swap renames.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from host.errors import OperatorError
from vitals.damage import check_integrity, damage_message, is_damage

VAULT_FILE = "vault.db"
VAULT_SCHEMA_SUFFIX = "_vault"
# The longest time of one transaction, with its waiting; a request waits slightly longer for its answer.
WITHIN_S = 4.0
LOCK_TIMEOUT_S = WITHIN_S
CLOSE_WITHIN_S = 0.5
# SQLite would replay a write-ahead log that is left beside a restored file.
MEND = (
    "restore it from a backup without the -wal and -shm beside it, or move all three away if there is none: "
    "what was sealed in it is then lost"
)

# Takes the statement and its values; returns the rows, if there are any.
Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

TABLES = (
    """
    CREATE TABLE IF NOT EXISTS {prefix}sealed (
        handle TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        subject_id TEXT NOT NULL,
        path TEXT NOT NULL,
        commitment TEXT NOT NULL,
        sealed_by TEXT NOT NULL,
        key_name TEXT NOT NULL,
        sealed_at_ms BIGINT NOT NULL,
        landed INTEGER NOT NULL DEFAULT 0,
        erased_at_ms BIGINT,
        box {bytes}
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS sealed_by_subject
    ON {prefix}sealed (tenant, project, execution_id, kind, subject_id)
    """,
    """
    CREATE TABLE IF NOT EXISTS {prefix}data_keys (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL DEFAULT '*',
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        wrapped_by TEXT NOT NULL,
        made_at_ms BIGINT NOT NULL,
        destroyed_at_ms BIGINT,
        wrapped {bytes},
        PRIMARY KEY (tenant, name)
    )
    """,
    "CREATE TABLE IF NOT EXISTS {prefix}marks (name TEXT PRIMARY KEY, at_ms BIGINT NOT NULL)",
)

# A vault from before projects had keys of their own lacks the column: its keys belong to the tenants.
PROJECT_OF_KEY = "project TEXT NOT NULL DEFAULT '*'"


class VaultUnavailable(OperatorError):
    """The vault cannot be read or written now; the message says why, and contains nothing from the vault."""


class VaultSilent(VaultUnavailable):
    """The database does not answer now, but may answer the next time."""


class VaultDamaged(VaultUnavailable):
    """The file's content is not what was written to it. The operator must restore it."""


class VaultDatabase(Protocol):
    """A separate database for sealed values. Safe to use from several threads."""

    def transaction(self, subject: str, *, alone: bool = False, within_s: float = WITHIN_S) -> Any:
        """Return a context in which statements run as one transaction, committed at its end and then on disk.

        Two transactions about the same subject do not overlap, in whichever processes they run.

        Args:
            subject: the subject.
            alone: True if no other transaction may run at the same time, whatever its subject.
            within_s: the longest time, with its waiting.

        Raises:
            VaultUnavailable: the database does not answer in time. The transaction is rolled back or, if its outcome
                is unknown, may be committed: each transaction can be repeated.
        """
        ...

    def shred(self) -> None:
        """Remove erased data from the database's own files, as far as this process can."""
        ...

    def close(self) -> None:
        """Close the database, also for work under way: its waiting callers get an error that it does not answer."""
        ...


class SqliteVaultDatabase:
    """A file of mode 600 that overwrites deleted data."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, check_same_thread=False, isolation_level=None, timeout=LOCK_TIMEOUT_S
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        # Its content exists nowhere else: damage is better reported now than when a value is needed.
        check_integrity(self._connection)
        for statement in TABLES:
            self._connection.execute(statement.format(prefix="", bytes="BLOB"))
        if "project" not in [row[1] for row in self._execute("PRAGMA table_info(data_keys)", ())]:
            self._connection.execute(f"ALTER TABLE data_keys ADD COLUMN {PROJECT_OF_KEY}")

    @contextmanager
    def transaction(
        self, subject: str, *, alone: bool = False, within_s: float = WITHIN_S
    ) -> Iterator[Execute]:
        """See `VaultDatabase`; the only wait is for another process that writes the file."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._execute
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise unavailable(self._path, "cannot be used now", error) from error

    def shred(self) -> None:
        """See `VaultDatabase`: the write-ahead log still has the earlier pages."""
        with self._lock:
            try:
                ((is_busy, *_),) = self._execute("PRAGMA wal_checkpoint(TRUNCATE)", ())
            except sqlite3.Error as error:
                raise unavailable(self._path, "cannot truncate its log", error) from error
        if is_busy:
            raise VaultUnavailable(
                "the vault's log cannot be truncated while another process reads the vault"
            )

    def close(self) -> None:
        """See `VaultDatabase`."""
        if self._lock.acquire(timeout=CLOSE_WITHIN_S):
            try:
                self._connection.close()
            finally:
                self._lock.release()

    def _execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()


def unavailable(path: Path, what: str, error: Exception) -> VaultUnavailable:
    """Return the error for a vault file that cannot be used."""
    if is_damage(error):
        return VaultDamaged(damage_message(f"The vault {path}", error, MEND))
    return VaultUnavailable(f"The vault {path} {what}: {error}")
