"""Uses the WebSocket if it is available, and REST for the rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from placet.transport.port import CallKey, Patience, Reply, Request, TokenSource
from placet.transport.rest import RestTransport, read_call

if TYPE_CHECKING:
    from placet.transport.ws import WsTransport

Mode = Literal["auto", "ws", "rest"]
REST_FOR_S = 60.0


class AutoTransport:
    """Agents' requests go over the WebSocket, everything else over REST.

    If the WebSocket is not available (because of a proxy), everything goes over REST, and the WebSocket is tried
    again a minute later. A request that moves from one to the other keeps its idempotency key.
    """

    def __init__(
        self, url: str, token: TokenSource, patience: Patience | None = None, mode: Mode = "auto"
    ) -> None:
        self._patience = patience or Patience()
        self._mode = mode
        self._where = url, token
        self._opened: WsTransport | None = None
        self._rest = RestTransport(url, token, self._patience)
        self._rest_until = 0.0

    @property
    def _ws(self) -> WsTransport:
        # Imported when needed, since most terminal commands never open a WebSocket.
        if self._opened is None:
            from placet.transport.ws import WsTransport

            self._opened = WsTransport(*self._where, self._patience)
        return self._opened

    async def send(self, request: Request) -> Reply:
        """The gateway's answer; see `Transport.send`."""
        if request.frame is None or self._by_rest():
            return await self._rest.send(request)
        from placet.transport.socket import NoWebSocket

        try:
            return await self._ws.send(request)
        except NoWebSocket:
            if self._mode == "ws":
                raise
            self._rest_until = asyncio.get_running_loop().time() + REST_FOR_S
            return await self._rest.send(request)

    async def decision(self, key: CallKey, wait_s: float) -> Reply:
        """The call once it is decided; see `Transport.decision`."""
        if self._by_rest():
            return await self._rest.decision(key, wait_s)
        body = await self._ws.pushed(key, min(wait_s, self._patience.poll_s))
        if body is None:
            return await self._rest.send(read_call(key, 0))
        self._ws.forget(key)
        return Reply(200, body)

    async def close(self) -> None:
        """Close both."""
        if self._opened is not None:
            await self._opened.close()
        await self._rest.close()

    def _by_rest(self) -> bool:
        return self._mode == "rest" or asyncio.get_running_loop().time() < self._rest_until
