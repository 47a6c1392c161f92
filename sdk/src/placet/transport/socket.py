"""One authenticated WebSocket connection, and what its failures mean."""

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
# 1008 is the protocol's own "policy violation"; 4401 and 4403 are what applications say for 401 and 403.
_AUTHENTICATION_CLOSES = frozenset({1008, 4401})
_NOT_AUTHORISED_CLOSE = 4403


class MessageTooLarge(Refused):
    """The other side closed the connection for the size of one message that it was sent."""


class NoWebSocket(PlacetError):
    """What answers at this address does not speak this WebSocket protocol: a proxy, an older gateway."""

    acts = "operator"


def ws_url(url: str) -> str:
    """The WebSocket address of a gateway's address."""
    scheme, _, rest = url.rstrip("/").partition("://")
    return f"{'wss' if scheme == 'https' else 'ws'}://{rest}/v1/ws"


class _Gone(asyncio.Transport):
    """What stands for a transport that is lost, where nothing is left to abort."""

    def abort(self) -> None:
        """Do nothing."""


class _Connection(ClientConnection):
    """A connection that may be given up again once it is lost.

    One that ends while much is still to be written is aborted by `websockets` after its end, and asyncio's transport
    has forgotten its loop by then: an AttributeError in place of ConnectionClosed.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.transport = _Gone()


@asynccontextmanager
async def open_socket(url: str, token: TokenSource, open_s: float) -> AsyncIterator[ClientConnection]:
    """Connect and show the token as the first message.

    Args:
        url: of the gateway, http or https.
        token: gives the bearer token.
        open_s: seconds that connecting may take.

    Raises:
        NoWebSocket: HTTP is spoken there, this protocol is not.
        ConnectionLost: nobody answered, or not now.
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
            # Closing that is cancelled leaves the TCP connection open.
            connection.transport.abort()


async def _connect(url: str, open_s: float) -> ClientConnection:
    shown = shown_address(url)
    try:
        # Reading is never held back: a sender that waits for a full peer while the peer waits for it
        # would be a deadlock. What may be in flight is bounded by what was asked.
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
        # Not chained: it quotes the proxy's address, in which a password may stand.
        raise NotConfigured(UNUSABLE_PROXY) from None
    except InvalidStatus as error:
        status = error.response.status_code
        if is_passing(status):
            raise ConnectionLost(f"{shown} answers {status} for now") from error
        raise NoWebSocket(f"{shown} answers {status} to a WebSocket") from error
    except InvalidMessage as error:
        raise ConnectionLost(f"{shown} broke off while connecting") from error
    except InvalidHandshake as error:
        raise NoWebSocket(f"{shown} does not take a WebSocket: {error}") from error
    except (OSError, asyncio.TimeoutError) as error:
        raise ConnectionLost(f"{shown} is not reachable ({error})") from error


def closed_error(closed: ConnectionClosed, served: bool) -> PlacetError:
    """What the end of a connection means.

    Args:
        closed: how it ended.
        served: whether anything was said on it; a token that expires on a socket is told apart from one
            that was never believed by this.
    """
    frame = closed.rcvd
    # Where this side closed first, the code is its own, said back.
    if frame is not None and frame.code == CloseCode.MESSAGE_TOO_BIG and closed.rcvd_then_sent is not False:
        said = frame.reason or "the message is over the size that is taken here"
        return MessageTooLarge("too_large", 413, said)
    if frame is not None and frame.code == _NOT_AUTHORISED_CLOSE:
        # Another token would not be let in either, nor would the next try.
        return NotAuthorised("not_authorised", 403, frame.reason or "the token may not work in this project")
    if not served and frame is not None and frame.code in _AUTHENTICATION_CLOSES:
        return Unauthenticated("unauthenticated", 401, frame.reason or "the token was not accepted")
    return ConnectionLost(f"the connection ended: {closed}")
