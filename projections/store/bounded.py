"""Connections to PostgreSQL on which nobody waits without end.

A server that is frozen or cut off closes nothing, and a frozen one's kernel still answers for it: only who waits can
tell. So a wait has a moment at which it ends. The connection is closed then, since its answer may still come.
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
# A network that swallows packets: the kernel finds out, also where nobody has a limit of their own.
NETWORK: Mapping[str, int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class Overdue(psycopg.OperationalError):
    """The server has not answered in time; the connection is closed."""


class BoundedConnection(psycopg.Connection[Row]):
    """A connection whose waits end at a moment, or when another thread gives it up.

    Attributes:
        ends_at: by `time.monotonic`; None waits for as long as it takes.
        given_up: set from any thread; whoever waits stops within a tenth of a second.
    """

    ends_at: float | None = None
    given_up: bool = False

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """As the base class; psycopg looks up from its waiting ten times a second.

        Raises:
            Overdue: the moment has come.
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
    """What libpq is told of the network, where the URL does not say otherwise."""
    return {name: value for name, value in NETWORK.items() if name not in given}


def connect_timeout(given: Mapping[str, Any], at_most_s: int = CONNECT_TIMEOUT_S) -> int:
    """Seconds to wait for a connection: the operator's own where it is set, never more than a caller can wait.

    Args:
        given: the parameters of the URL.
        at_most_s: what holds where nothing is set, and the most where the caller's own time is short.
    """
    stated = int(given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or 0)
    if stated <= 0:
        return at_most_s
    return stated if at_most_s == CONNECT_TIMEOUT_S else min(stated, at_most_s)
