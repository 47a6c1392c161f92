"""Damage of a SQLite file: how it is told from other failures, and how it is looked for.

SQLite keeps no checksums. A look finds pages that no longer fit together and cuts, not a value that became another.
"""

from __future__ import annotations

import sqlite3

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# Of Python's own module, without a code: a text that SQLite wrote is UTF-8.
_NOT_TEXT = "Could not decode to UTF-8"


def is_damage(error: BaseException) -> bool:
    """Whether an error, or what it was raised from, says that a file does not hold what SQLite wrote."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, sqlite3.Error) and _says_damage(cause):
            return True
        cause = cause.__cause__
    return False


def told(what: str, error: BaseException, mend: str) -> str:
    """One sentence on a damaged file: what it is, what was found, and what to do."""
    return f"{what} is damaged ({error}): {mend}."


def look_over(connection: sqlite3.Connection) -> None:
    """Read every page of a file, which takes 1 s to 4 s a gigabyte on a quick disk.

    Raises:
        sqlite3.DatabaseError: it is damaged, as `is_damage` tells; or another error where it cannot be read.
    """
    ((found, *_), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != "ok":
        error = sqlite3.DatabaseError(" ".join(str(found).split()))
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _says_damage(error: sqlite3.Error) -> bool:
    # The lowest byte is the kind, the others say more of it.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE or str(error).startswith(_NOT_TEXT)
