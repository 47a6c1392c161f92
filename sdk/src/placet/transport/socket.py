"""One authenticated WebSocket connection, and the errors for its failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidProxy,
    InvalidStatus,
)
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from placet.config import NotConfigured, shown_address
from placet.errors import NotAuthorised, PlacetError, Refused, Unauthenticated, is_passing
from placet.tls import tls_for
from placet.transport.bearer import authenticate_message
from placet.transport.port import ConnectionLost, TokenSource
from placet.transport.rest import UNUSABLE_PROXY

SUBPROTOCOL = Subprotocol("placet.v1")
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# 1008 is the protocol's own "policy violation"; 4401 and 4403 are the applications' codes for 401 and 403.
_AUTHENTICATION_CLOSES = frozenset({1008, 4401})
_NOT_AUTHORISED_CLOSE = 4403


class MessageTooLarge(Refused):
    """The other side closed the connection because of the size of a message."""


class NoWebSocket(PlacetError):
    """The server at this address does not support this WebSocket protocol: a proxy, an older gateway."""

    acts = "operator"


def ws_url(url: str) -> str:
    """The WebSocket address of a gateway's address."""
    scheme, _, rest = url.rstrip("/").partition("://")
    return f"{'wss' if scheme == 'https' else 'ws'}://{rest}/v1/ws"


class _Gone(asyncio.Transport):
    """Replaces a lost transport, which cannot be aborted again."""

    def abort(self) -> None:
        """Do nothing."""


class _Connection(ClientConnection):
    """A connection that can be aborted after it is lost.

    If a connection ends while much is still to be written, `websockets` aborts it after its end. By then asyncio's
    transport has no loop any more, which would raise an AttributeError in place of ConnectionClosed.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.transport = _Gone()


@asynccontextmanager
async def open_socket(url: str, token: TokenSource, open_s: float) -> AsyncIterator[ClientConnection]:
    """Connect and send the token as the first message.

    Args:
        url: the gateway's address, http or https.
        token: returns the bearer token.
        open_s: the maximal time to connect, in seconds.

    Raises:
        NoWebSocket: the server supports HTTP, but not this protocol.
        ConnectionLost: there was no answer, or a temporary error.
    """
    first = json.dumps(authenticate_message(token))
    connection = await _connect(ws_url(url), open_s)
    try:
        if connection.subprotocol != SUBPROTOCOL:
            raise NoWebSocket(f"{shown_address(ws_url(url))} does not speak {SUBPROTOCOL}")
        await connection.send(first)
        yield connection
    finally:
        try:
            await connection.close()
        finally:
            # A cancelled close leaves the TCP connection open.
            connection.transport.abort()


async def _connect(url: str, open_s: float) -> ClientConnection:
    shown = shown_address(url)
    try:
        # Reading has no back-pressure: a sender that waits for a full peer while the peer waits for it would be a
        # deadlock. The requests bound how much is in flight.
        return await connect(
            url,
            create_connection=_Connection,
            subprotocols=[SUBPROTOCOL],
            open_timeout=open_s,
            close_timeout=1,
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=None,
            ssl=tls_for(url) if url.startswith("wss:") else None,
        )
    except InvalidProxy:
        # Not chained: it quotes the proxy's address, which can contain a password.
        raise NotConfigured(UNUSABLE_PROXY) from None
    except InvalidStatus as error:
        status = error.response.status_code
        if is_passing(status):
            raise ConnectionLost(f"{shown} answers {status} for now") from error
        raise NoWebSocket(f"{shown} answers {status} to a WebSocket") from error
    except InvalidMessage as error:
        raise ConnectionLost(f"{shown} closed the connection while connecting") from error
    except InvalidHandshake as error:
        raise NoWebSocket(f"{shown} does not accept a WebSocket: {error}") from error
    except (OSError, asyncio.TimeoutError) as error:
        raise ConnectionLost(f"{shown} is not reachable ({error})") from error


def closed_error(closed: ConnectionClosed, served: bool) -> PlacetError:
    """The error for the end of a connection.

    Args:
        closed: how it ended.
        served: true if the gateway sent anything on it; this distinguishes a token that expired on the socket from
            one that was never accepted.
    """
    frame = closed.rcvd
    # If this side closed first, the code is its own, echoed.
    if frame is not None and frame.code == CloseCode.MESSAGE_TOO_BIG and closed.rcvd_then_sent is not False:
        said = frame.reason or "the message is larger than the gateway accepts"
        return MessageTooLarge("too_large", 413, said)
    if frame is not None and frame.code == _NOT_AUTHORISED_CLOSE:
        # Not retried: the next try would be refused too.
        return NotAuthorised("not_authorised", 403, frame.reason or "the token may not work in this project")
    if not served and frame is not None and frame.code in _AUTHENTICATION_CLOSES:
        return Unauthenticated("unauthenticated", 401, frame.reason or "the token was not accepted")
    return ConnectionLost(f"the connection ended: {closed}", opened=served)
