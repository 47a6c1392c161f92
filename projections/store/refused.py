"""Tells whether a PostgreSQL server refuses this connection for good, or cannot accept it now."""

from __future__ import annotations

import re

import psycopg

# Before a connection is accepted, libpq reports only the server's sentence: no SQLSTATE.
_SAYS_NO = re.compile(r"FATAL:|no password supplied|does not support SSL|certificate")
# Errors of a server or a pooler that accepts the same connection later; or one of several hosts is down.
_NOT_NOW = re.compile(
    r"starting up|shutting down|accepting connections|in recovery mode|too many|connection slots|"
    r"no more connections|cannot connect to server|server login|terminating connection|"
    r"Connection refused|timeout expired|timed out|unreachable|resolve host"
)


def is_refused(error: psycopg.Error) -> bool:
    """Returns True if the same attempt will fail again: the user, password, name or certificate is wrong.

    If a server's messages are not in English, every refusal counts as permanent.
    """
    text = str(error)
    return _SAYS_NO.search(text) is not None and _NOT_NOW.search(text) is None
