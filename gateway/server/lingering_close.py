"""Closing a connection so that its last answer arrives, and so that it really ends.

A TCP connection that is closed while its peer is still sending is reset, and an answer that the peer has not read yet
is lost. So further input is read and dropped for a while, within limits. And a peer that never reads would keep its
output in memory forever: it is disconnected.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from gateway.server.bounds import Bounds


class LingeringTransport:
    """A transport whose `close` lets the answer arrive; all else is the transport's own.

    Attributes:
        still_sending: True if the peer is in the middle of input that will not be read.
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
        """Write the data, or drop it if the connection is closing: the server notifies the sender of the end."""
        if not self.is_closing():
            self.transport.write(data)

    def is_closing(self) -> bool:
        """Return True if nothing more is sent on the connection."""
        return self._is_closing or self.transport.is_closing()

    def close(self) -> None:
        """Close the connection when its output has been sent, within limits."""
        if self.is_closing():
            return
        self._is_closing = True
        if self.still_sending:
            InputDrain(self.transport, self._protocol, self._bounds)
        else:
            self.transport.close()
            if self.transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(self._bounds.stall_s, self.transport.abort)

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        self.transport.abort()


class InputDrain(asyncio.Protocol):
    """Reads and drops all input after the last answer, until the sender closes or a limit is reached."""

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
        """Drop the data."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._transport.abort()

    def pause_writing(self) -> None:
        """Nothing more is written; a waiting writer is notified by the end of the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the connection's original protocol."""
        self._timer.cancel()
        self._before.connection_lost(exc)


def as_transport(lingering: LingeringTransport) -> asyncio.Transport:
    """Return it as a transport, for code that requires that type."""
    return cast(asyncio.Transport, lingering)
