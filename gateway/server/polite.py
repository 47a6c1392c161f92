"""Closing a connection so that its last answer arrives, and so that it really ends.

A TCP connection that is closed while its peer still sends is reset, and the answer that lies unread at the peer is
lost with it. So what is still sent is read and dropped for a while, within bounds. And a peer that never reads would
keep what was written for it for ever: it is cut off.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from gateway.server.bounds import Bounds


class PoliteTransport:
    """A transport whose `close` lets the answer arrive; all else is the transport's own.

    Attributes:
        still_sending: whether the peer is in the middle of something that nobody will read.
    """

    def __init__(self, transport: asyncio.Transport, protocol: asyncio.Protocol, bounds: Bounds) -> None:
        self.transport = transport
        self.still_sending = False
        self._protocol = protocol
        self._bounds = bounds
        self._is_closing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        """Hand the connection over to another protocol."""
        self._protocol = protocol
        self.transport.set_protocol(protocol)

    def write(self, data: bytes) -> None:
        """Write it, or drop it where nothing more is said: whoever answers learns of the end from the server."""
        if not self.is_closing():
            self.transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing more will be said here."""
        return self._is_closing or self.transport.is_closing()

    def close(self) -> None:
        """Close it once what was written has left, within bounds."""
        if self.is_closing():
            return
        self._is_closing = True
        if self.still_sending:
            Leftovers(self.transport, self._protocol, self._bounds)
        else:
            self.transport.close()
            if self.transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(self._bounds.stall_s, self.transport.abort)

    def abort(self) -> None:
        """Close it now."""
        self._is_closing = True
        self.transport.abort()


class Leftovers(asyncio.Protocol):
    """Reads and drops what comes after the last answer, until its sender has had enough or the bounds are reached."""

    def __init__(self, transport: asyncio.Transport, before: asyncio.Protocol, bounds: Bounds) -> None:
        self._transport = transport
        self._before = before
        self._left_bytes = bounds.linger_bytes
        self._timer = asyncio.get_running_loop().call_later(bounds.linger_s, transport.abort)
        if transport.can_write_eof():
            transport.write_eof()
        transport.set_protocol(self)
        transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Drop it."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._transport.abort()

    def pause_writing(self) -> None:
        """Nothing more is written; whoever waits to write learns it from the connection's end."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol whose connection it was."""
        self._timer.cancel()
        self._before.connection_lost(exc)


def as_transport(polite: PoliteTransport) -> asyncio.Transport:
    """The same, for who asks for a transport by its type."""
    return cast(asyncio.Transport, polite)
