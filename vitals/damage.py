"""Damage of a SQLite file: how to distinguish it from other failures, and how to check for it.

SQLite keeps no checksums. The check finds inconsistent pages and truncation, but not a changed value.
"""

from __future__ import annotations

import sqlite3

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# An error of Python's own module, without a code. It means damage, since SQLite wrote the text as UTF-8.
_NOT_TEXT = "Could not decode to UTF-8"


def is_damage(error: BaseException) -> bool:
    """Returns True if an error, or one of its causes, means that a file is not as SQLite wrote it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, sqlite3.Error) and _says_damage(cause):
            return True
        cause = cause.__cause__
    return False


def damage_message(what: str, error: BaseException, mend: str) -> str:
    """One sentence on a damaged file: what it is, what was found, and what to do."""
    return f"{what} is damaged ({error}): {mend}."


def check_integrity(connection: sqlite3.Connection) -> None:
    """Check every page of a file, which takes 1 s to 4 s per gigabyte on a fast disk.

    Raises:
        sqlite3.DatabaseError: the file is damaged (see `is_damage`), or cannot be read.
    """
    ((found, *_), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != "ok":
        error = sqlite3.DatabaseError(" ".join(str(found).split()))
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _says_damage(error: sqlite3.Error) -> bool:
    # The lowest byte is the primary code, the others are details.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE or str(error).startswith(_NOT_TEXT)
