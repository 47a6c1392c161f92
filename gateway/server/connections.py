"""Connections: which of them are still unauthenticated, and how many each subject has.

A connection is authenticated once one of its requests had a valid token. It counts for the subject of that token,
which can have a limited number. The number of others is limited, for each address and in total: for one too many, the
oldest of the address with the most is closed. A client with a token is unauthenticated only between connecting and
its first request, so an attacker who opens silent connections up to the limit closes its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from time import monotonic
from typing import Any

from gateway.problems import Problem
from gateway.server.bounds import Bounds
from schemas.refusals import Refusal

STATE = "client_connection"
# Many simultaneous connections are not yet an attack: a limit becomes strict at this multiple of its number.
HARD = 4
RETRY_AFTER_S = 5


def _nothing() -> None:
    return


def _for_free(seconds: float) -> float:
    return 0.0


def uncounted(size: int) -> None:
    """Count no bytes."""


class ClientConnection:
    """A connection, as the application uses it.

    Attributes:
        on_authenticated: called once, when its token is verified.
        charge: counts processor time that the connection's input took, in seconds, for the subject of its token, and
            returns the seconds until more can be done for it.
        keep: notes how many bytes of a message of its client are in memory, for that subject; raises `Problem` if
            there is no room for them.
        is_behind: returns True if output waits for the client.
        caught_up: waits until the client has taken most of the output, or is gone.
        gone: set once the connection is lost.
    """

    __slots__ = (
        "_abort",
        "_connections",
        "_owner",
        "address",
        "caught_up",
        "charge",
        "gone",
        "is_authenticated",
        "is_behind",
        "keep",
        "on_authenticated",
        "since",
    )

    def __init__(
        self,
        address: str,
        abort: Callable[[], None],
        connections: Connections,
        is_behind: Callable[[], bool],
        caught_up: Callable[[], Awaitable[None]],
    ) -> None:
        self.is_behind = is_behind
        self.caught_up = caught_up
        self.address = address
        self.since = monotonic()
        self.charge: Callable[[float], float] = _for_free
        self.keep: Callable[[int], None] = uncounted
        self.gone = asyncio.Event()
        self.is_authenticated = False
        self.on_authenticated: Callable[[], None] = _nothing
        self._abort = abort
        self._owner: Hashable = None
        self._connections = connections
        connections.add(self)

    def mark_authenticated(self, owner: Hashable) -> bool:
        """Note that a request of this connection had a valid token; False if its owner has too many connections.

        A proxy sends requests of several over one connection: it counts for the first.
        """
        if not self.is_authenticated and not self.gone.is_set():
            if not self._connections.admit(self, owner):
                return False
            self._owner = owner
            self.is_authenticated = True
            self.on_authenticated()
        return True

    def mark_unauthenticated(self) -> None:
        """Note that a later request of this connection had no valid token."""
        if self.is_authenticated:
            self.is_authenticated = False
            self._connections.leave(self._owner)
            self._connections.add(self)

    def closed(self) -> None:
        """Note that the connection is gone."""
        self.gone.set()
        if self.is_authenticated:
            self.is_authenticated = False
            self._connections.leave(self._owner)
        else:
            self._connections.remove(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self._abort()


class Connections:
    """The unauthenticated connections, by address, the oldest first; the number of the others, by owner."""

    def __init__(self, bounds: Bounds) -> None:
        """Begin without connections.

        Args:
            bounds: their maximum numbers.
        """
        self._bounds = bounds
        self._of_owner = Counter[Hashable]()
        self._by_address: dict[str, OrderedDict[ClientConnection, None]] = {}
        self._count = 0

    def add(self, connection: ClientConnection) -> None:
        """Add a new connection; if there are too many now, one is closed."""
        connections = self._by_address.setdefault(connection.address, OrderedDict())
        connections[connection] = None
        self._count += 1
        if len(connections) > self._bounds.unauthenticated_per_address:
            self._close_oldest(
                connections, len(connections) > HARD * self._bounds.unauthenticated_per_address
            )
        elif self._count > self._bounds.unauthenticated:
            most = max(self._by_address.values(), key=len)
            self._close_oldest(most, self._count > HARD * self._bounds.unauthenticated)

    def admit(self, connection: ClientConnection, owner: Hashable) -> bool:
        """Count an unauthenticated connection for an owner; False if it has the maximum already."""
        if self._of_owner[owner] >= self._bounds.connections_per_subject:
            return False
        self.remove(connection)
        self._of_owner[owner] += 1
        return True

    def leave(self, owner: Hashable) -> None:
        """Count one connection less for an owner."""
        self._of_owner[owner] -= 1
        if not self._of_owner[owner]:
            del self._of_owner[owner]

    def remove(self, connection: ClientConnection) -> None:
        """Remove an unauthenticated connection that is authenticated now, or gone."""
        connections = self._by_address.get(connection.address)
        if connections is None or connection not in connections:
            return
        del connections[connection]
        self._count -= 1
        if not connections:
            del self._by_address[connection.address]

    def __len__(self) -> int:
        return self._count

    def _close_oldest(self, connections: OrderedDict[ClientConnection, None], even_new: bool) -> None:
        oldest = next(iter(connections))
        if even_new or monotonic() - oldest.since > self._bounds.unauthenticated_s:
            self.remove(oldest)
            oldest.abort()


def connection_of(scope: MutableMapping[str, Any]) -> ClientConnection | None:
    """Return the connection of a request or socket; None without a server."""
    connection = scope.get("state", {}).get(STATE)
    return connection if isinstance(connection, ClientConnection) else None


async def gone(scope: MutableMapping[str, Any]) -> None:
    """Wait until the connection of a request or socket is lost; for ever without a server."""
    connection = connection_of(scope)
    await (asyncio.Event() if connection is None else connection.gone).wait()


def mark_request_authenticated(scope: MutableMapping[str, Any], owner: Hashable) -> None:
    """Note that the token of a request or socket was valid.

    Args:
        scope: the ASGI scope of the request or socket.
        owner: for whom the connection counts.

    Raises:
        Problem: 429 quota, the owner has too many connections.
    """
    connection = connection_of(scope)
    if connection is not None and not connection.mark_authenticated(owner):
        detail = "too many connections of this subject are open: use those that there are, or close some"
        raise Problem(Refusal.QUOTA, detail, retry_after=RETRY_AFTER_S)
