"""Opens the vault of an installation, in either kind of database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gateway.vault.store import (
    PROJECT_OF_KEY,
    TABLES,
    VAULT_FILE,
    VAULT_SCHEMA_SUFFIX,
    SqliteVaultDatabase,
    VaultDatabase,
    unavailable,
)
from projections.store.urls import is_sqlite


def open_database(data_dir: Path, database_url: str) -> VaultDatabase:
    """Open the vault of an installation: in its data directory, or in its PostgreSQL database.

    Raises:
        VaultSilent: the database does not answer now.
        VaultDamaged: the file is damaged.
        VaultUnavailable: the database refuses the connection, or the file cannot be opened.
    """
    if is_sqlite(database_url):
        try:
            return SqliteVaultDatabase(data_dir / VAULT_FILE)
        except (sqlite3.Error, OSError) as error:
            raise unavailable(data_dir / VAULT_FILE, "cannot be opened", error) from error
    # The driver is loaded only if the vault is in PostgreSQL.
    from gateway.vault.postgres import PostgresVaultDatabase
    from projections.store.postgres_address import split_url

    plain, schema = split_url(database_url)
    statements = (*TABLES, f"ALTER TABLE {{prefix}}data_keys ADD COLUMN IF NOT EXISTS {PROJECT_OF_KEY}")
    return PostgresVaultDatabase(plain, schema + VAULT_SCHEMA_SUFFIX, statements)
