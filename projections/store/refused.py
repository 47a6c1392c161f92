"""Why nobody was let into a PostgreSQL: because it does not answer now, or because it never will as it was asked."""

from __future__ import annotations

import re

import psycopg

# Before anybody is let in, libpq tells nothing but the server's sentence: no SQLSTATE.
_SAYS_NO = re.compile(r"FATAL:|no password supplied|does not support SSL|certificate")
# What a server or a pooler says that will let the same one in later; or another of several hosts, that it is away.
_NOT_NOW = re.compile(
    r"starting up|shutting down|accepting connections|in recovery mode|too many|connection slots|"
    r"no more connections|cannot connect to server|server login|terminating connection|"
    r"Connection refused|timeout expired|timed out|unreachable|resolve host"
)


def is_refused(error: psycopg.Error) -> bool:
    """Whether the same attempt will fail again: the user, the password, the name or the certificate is wrong.

    A server that speaks another language than English is taken at its word: what it refuses is refused.
    """
    text = str(error)
    return _SAYS_NO.search(text) is not None and _NOT_NOW.search(text) is None
