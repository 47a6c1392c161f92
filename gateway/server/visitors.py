"""Connections, and which of them are still unauthenticated.

A connection is a stranger until one of its requests had a valid token. The number of strangers is limited, for each
address and in total: for one too many, the oldest of the address with the most is closed. A client with a token is a
stranger only between connecting and its first request, so an attacker who fills the places with silent connections
displaces its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any

from gateway.server.bounds import Bounds

STATE = "visitor"
# Many simultaneous connections are not yet an attack: a limit becomes strict at this multiple of its number.
HARD = 4


def _nothing() -> None:
    return


class Visitor:
    """A connection, as the application uses it.

    Attributes:
        on_known: called once, when its token is verified.
        is_behind: returns True if output waits for the client.
        caught_up: waits until the client has taken most of the output, or is gone.
    """

    __slots__ = ("_abort", "_strangers", "address", "caught_up", "is_behind", "is_known", "on_known", "since")

    def __init__(
        self,
        address: str,
        abort: Callable[[], None],
        strangers: Strangers,
        is_behind: Callable[[], bool],
        caught_up: Callable[[], Awaitable[None]],
    ) -> None:
        self.is_behind = is_behind
        self.caught_up = caught_up
        self.address = address
        self.since = monotonic()
        self.is_known = False
        self.on_known: Callable[[], None] = _nothing
        self._abort = abort
        self._strangers = strangers
        strangers.enter(self)

    def known(self) -> None:
        """Note that a request of this connection had a valid token."""
        if not self.is_known:
            self.is_known = True
            self._strangers.leave(self)
            self.on_known()

    def doubted(self) -> None:
        """Note that a later request of this connection had no valid token."""
        if self.is_known:
            self.is_known = False
            self._strangers.enter(self)

    def left(self) -> None:
        """Note that the connection is gone."""
        self._strangers.leave(self)

    def turn_out(self) -> None:
        """Close the connection at once."""
        self._abort()


class Strangers:
    """The unauthenticated connections, by address, the oldest first."""

    def __init__(self, bounds: Bounds) -> None:
        """Begin without connections.

        Args:
            bounds: their maximum numbers.
        """
        self._bounds = bounds
        self._by_address: dict[str, OrderedDict[Visitor, None]] = {}
        self._count = 0

    def enter(self, visitor: Visitor) -> None:
        """Add a new connection; if there are too many now, one is closed."""
        places = self._by_address.setdefault(visitor.address, OrderedDict())
        places[visitor] = None
        self._count += 1
        if len(places) > self._bounds.strangers_each:
            self._turn_out_oldest(places, len(places) > HARD * self._bounds.strangers_each)
        elif self._count > self._bounds.strangers:
            most = max(self._by_address.values(), key=len)
            self._turn_out_oldest(most, self._count > HARD * self._bounds.strangers)

    def leave(self, visitor: Visitor) -> None:
        """Remove a connection that is authenticated or gone."""
        places = self._by_address.get(visitor.address)
        if places is None or visitor not in places:
            return
        del places[visitor]
        self._count -= 1
        if not places:
            del self._by_address[visitor.address]

    def __len__(self) -> int:
        return self._count

    def _turn_out_oldest(self, places: OrderedDict[Visitor, None], even_new: bool) -> None:
        oldest = next(iter(places))
        if even_new or monotonic() - oldest.since > self._bounds.strangers_s:
            self.leave(oldest)
            oldest.turn_out()


def visitor_of(scope: MutableMapping[str, Any]) -> Visitor | None:
    """Return the connection of a request or socket; None without a server."""
    visitor = scope.get("state", {}).get(STATE)
    return visitor if isinstance(visitor, Visitor) else None


def greet(scope: MutableMapping[str, Any]) -> None:
    """Note that the token of a request or socket was valid.

    Args:
        scope: the ASGI scope of the request or socket.
    """
    visitor = visitor_of(scope)
    if visitor is not None:
        visitor.known()
