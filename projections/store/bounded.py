"""Connections to PostgreSQL on which no caller waits without end.

A server that is frozen or cut off closes no connection, and a frozen server's kernel still answers for it: only the
waiting client can notice. So every wait has a deadline. The connection is closed then: its answer can still come.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

import psycopg

Row = TypeVar("Row", covariant=True)
T = TypeVar("T")

CONNECT_TIMEOUT_S = 10
# A network that drops packets: the kernel detects it, also for callers without a limit of their own.
NETWORK: Mapping[str, int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class Overdue(psycopg.OperationalError):
    """The server has not answered in time; the connection is closed."""


class BoundedConnection(psycopg.Connection[Row]):
    """A connection whose waits end at a deadline, or when another thread gives it up.

    Attributes:
        ends_at: a time of `time.monotonic`; None waits without limit.
        given_up: set from any thread; a wait stops within a tenth of a second.
    """

    ends_at: float | None = None
    given_up: bool = False

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """As the base class; psycopg interrupts its waiting ten times a second.

        Raises:
            Overdue: the deadline has passed.
        """
        try:
            return super().wait(self._bounded(gen), *args, **kwargs)
        except Overdue:
            self.pgconn.finish()
            raise

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        ready = None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            ready = yield wanted
            if not ready and self._is_over():
                raise Overdue("the database has not answered in time")

    def _is_over(self) -> bool:
        return self.given_up or (self.ends_at is not None and time.monotonic() >= self.ends_at)


def network_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The network settings for libpq, unless the URL sets them."""
    return {name: value for name, value in NETWORK.items() if name not in given}


def connect_timeout(given: Mapping[str, Any], at_most_s: int = CONNECT_TIMEOUT_S) -> int:
    """Seconds to wait for a connection: the operator's setting if there is one, never more than a caller can wait.

    Args:
        given: the parameters of the URL.
        at_most_s: the value if nothing is set, and the maximum if the caller's own time is short.
    """
    stated = int(given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or 0)
    if stated <= 0:
        return at_most_s
    return stated if at_most_s == CONNECT_TIMEOUT_S else min(stated, at_most_s)
