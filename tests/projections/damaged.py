"""Damage done to the file of a SQLite view."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def spoil(file: Path, table: str) -> None:
    """Overwrite the root page of one table."""
    with closing(sqlite3.connect(file)) as connection:
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        asked = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((page,),) = connection.execute(asked, (table,)).fetchall()
    with file.open("r+b") as written:
        written.seek((page - 1) * size)
        written.write(b"\xff" * size)
