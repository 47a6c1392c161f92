"""Connections, and which of them are still unauthenticated.

A connection is authenticated once one of its requests had a valid token. The number of others is limited, for each
address and in total: for one too many, the oldest of the address with the most is closed. A client with a token is
unauthenticated only between connecting and its first request, so an attacker who opens silent connections up to the
limit closes its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any

from gateway.server.bounds import Bounds

STATE = "client_connection"
# Many simultaneous connections are not yet an attack: a limit becomes strict at this multiple of its number.
HARD = 4


def _nothing() -> None:
    return


class ClientConnection:
    """A connection, as the application uses it.

    Attributes:
        on_authenticated: called once, when its token is verified.
        is_behind: returns True if output waits for the client.
        caught_up: waits until the client has taken most of the output, or is gone.
        gone: set once the connection is lost.
    """

    __slots__ = (
        "_abort",
        "_unauthenticated",
        "address",
        "caught_up",
        "gone",
        "is_authenticated",
        "is_behind",
        "on_authenticated",
        "since",
    )

    def __init__(
        self,
        address: str,
        abort: Callable[[], None],
        unauthenticated: UnauthenticatedConnections,
        is_behind: Callable[[], bool],
        caught_up: Callable[[], Awaitable[None]],
    ) -> None:
        self.is_behind = is_behind
        self.caught_up = caught_up
        self.address = address
        self.since = monotonic()
        self.gone = asyncio.Event()
        self.is_authenticated = False
        self.on_authenticated: Callable[[], None] = _nothing
        self._abort = abort
        self._unauthenticated = unauthenticated
        unauthenticated.add(self)

    def mark_authenticated(self) -> None:
        """Note that a request of this connection had a valid token."""
        if not self.is_authenticated:
            self.is_authenticated = True
            self._unauthenticated.remove(self)
            self.on_authenticated()

    def mark_unauthenticated(self) -> None:
        """Note that a later request of this connection had no valid token."""
        if self.is_authenticated:
            self.is_authenticated = False
            self._unauthenticated.add(self)

    def closed(self) -> None:
        """Note that the connection is gone."""
        self.gone.set()
        self._unauthenticated.remove(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self._abort()


class UnauthenticatedConnections:
    """The unauthenticated connections, by address, the oldest first."""

    def __init__(self, bounds: Bounds) -> None:
        """Begin without connections.

        Args:
            bounds: their maximum numbers.
        """
        self._bounds = bounds
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

    def remove(self, connection: ClientConnection) -> None:
        """Remove a connection that is authenticated or gone."""
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


def mark_request_authenticated(scope: MutableMapping[str, Any]) -> None:
    """Note that the token of a request or socket was valid.

    Args:
        scope: the ASGI scope of the request or socket.
    """
    connection = connection_of(scope)
    if connection is not None:
        connection.mark_authenticated()
