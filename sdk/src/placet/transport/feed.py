"""The live stream: a subscription that outlives its connections."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from websockets.exceptions import ConnectionClosed

from placet.config import shown_address
from placet.errors import Unauthenticated, is_passing, refusal
from placet.models import Event
from placet.transport.auto import Mode
from placet.transport.port import ConnectionLost, Patience, TokenSource
from placet.transport.retry import Outage
from placet.transport.socket import NoWebSocket, closed_error, open_socket
from placet.transport.sse import sse_events

# Answers to the stream's own messages, and keep-alives: not passed on to the caller.
_UNSEEN = frozenset({"pong", "reply", "authenticated", "subscribed"})


async def feed(
    url: str,
    token: TokenSource,
    channels: Sequence[str],
    cursor: str | None,
    patience: Patience,
    mode: Mode = "auto",
) -> AsyncGenerator[Event, None]:
    """Every message of channels, across reconnects, from a cursor on.

    Raises:
        Unreachable: the gateway does not answer: at first for `Patience.request_s`, later for `Patience.outage_s`.
        Unauthenticated: the token is not accepted.
        NotAuthorised: the token is not permitted in the named project.
    """
    outage, by_sse = Outage(patience), mode == "rest"
    while True:
        source = (_sse if by_sse else _socket)(url, token, channels, cursor, patience)
        try:
            async with aclosing(source) as messages:
                snapshots = _Snapshots()
                async for message in messages:
                    outage.heard()
                    if not message.type:
                        cursor = message.cursor
                        continue
                    event = snapshots.joined(message)
                    if event is None:
                        continue
                    cursor = None if event.type == "resync_required" else event.cursor or cursor
                    yield event
        except NoWebSocket:
            if mode == "ws":
                raise
            by_sse = True
            continue
        except ConnectionLost as lost:
            outage.tolerate(lost)
        await outage.pause()


class _Snapshots:
    """Joins the parts of snapshots on one connection; an incomplete snapshot is dropped."""

    def __init__(self) -> None:
        self._items: dict[Any, list[Any]] = {}

    def joined(self, message: Event) -> Event | None:
        """The message; for a snapshot, all its parts as one, or None while parts are missing."""
        if message.type == "resync_required":
            self._items.clear()
        if message.type != "snapshot":
            return message
        channel = message.body.get("channel")
        items = self._items.pop(channel, [])
        items += message.body.get("items") or ()
        if message.body.get("more"):
            self._items[channel] = items
            return None
        return Event(message.type, message.cursor, {**message.body, "items": items})


async def _socket(
    url: str, token: TokenSource, channels: Sequence[str], cursor: str | None, patience: Patience
) -> AsyncGenerator[Event, None]:
    served = False
    try:
        async with open_socket(url, token, patience.open_s) as connection:
            await connection.send(_subscribe(channels, cursor))
            while True:
                message = json.loads(await connection.recv())
                served = True
                if message.get("type") == "error":
                    raise _error(int(message.get("status", 400)), message)
                if message.get("type") == "resync_required":
                    await connection.send(_subscribe(channels, None))
                if message.get("type") not in _UNSEEN:
                    yield _event(message)
    except ConnectionClosed as closed:
        raise closed_error(closed, served) from closed


async def _sse(
    url: str, token: TokenSource, channels: Sequence[str], cursor: str | None, patience: Patience
) -> AsyncGenerator[Event, None]:
    params = {"channels": ",".join(channels)}
    async with aclosing(stream_messages(url, token, cursor, patience, params)) as messages:
        async for message in messages:
            yield message


async def stream_messages(
    url: str, token: TokenSource, cursor: str | None, patience: Patience, params: Mapping[str, str]
) -> AsyncGenerator[Event, None]:
    """The messages of one connection to `/v1/events/stream`; one without a type is only a position.

    Raises:
        ConnectionLost: the connection was not opened, has ended by a fault or before its first message, or the
            gateway refuses for now.
        PlacetError: the gateway refuses the request.
    """
    has_said = False
    async with aclosing(
        sse_events(url, "/v1/events/stream", token, patience, cursor, params=params)
    ) as events:
        async for kind, data, last_id in events:
            has_said = True
            if not data:
                yield Event("", last_id)
                continue
            message = json.loads(data)
            if kind == "error":
                error = _error(int(message.get("status", 400)), message)
                # The token was accepted at first and has expired since: the next try uses a new one.
                if isinstance(error, Unauthenticated):
                    raise ConnectionLost(str(error), opened=True)
                raise error
            yield _event({"type": kind, **message, "cursor": message.get("cursor") or last_id})
    if not has_said:
        # One that does so each time never says anything: it must not be taken for a log without events.
        raise ConnectionLost(f"{shown_address(url)} ends its stream before the first message")


def _error(status: int, problem: Mapping[str, Any]) -> Exception:
    """The error for an `error` message on the stream; a temporary one only ends this connection."""
    error = refusal(status, problem)
    return ConnectionLost(str(error)) if is_passing(status) else error


def _subscribe(channels: Sequence[str], cursor: str | None) -> str:
    message: dict[str, Any] = {"type": "subscribe", "channels": list(channels)}
    return json.dumps(message if cursor is None else {**message, "cursor": cursor})


def _event(message: Mapping[str, Any]) -> Event:
    body = {name: value for name, value in message.items() if name not in ("type", "cursor")}
    return Event(str(message.get("type", "")), str(message.get("cursor") or ""), body)
