"""Requests pipelined over one WebSocket.

The steps on every connection, in this order:
1. the token is sent as the first message;
2. the channels of awaited calls are subscribed to, from their snapshots;
3. the connection is made available to senders;
4. every unanswered request is sent again, in the order of the requests, under the same `ref`;
5. messages are read until the connection ends; the first one shows that the token is accepted, and only then the
   requests that are longer than the limit before authentication are sent, in the same way.
Nothing awaits between 3 and the first iteration of 4, nor between the acceptance and the first iteration of 5: a
request is sent by its sender, by 4 or 5, or by both under one `ref`, and never by none.

If the other side closes because of the size of a message (1009), the longest of the sent requests ends as
`too_large`, and the others are sent again: the refused message is at most that long, so the longest is too long as
well.

No cursor is kept for 2. A cursor would have to cover everything that was missed on all channels, and no message
proves that: the answer to the token, a reply or another call's decision can come before a missed message, and the
connection can end between them. A call's snapshot is one row, and has its decision whenever that was made.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from placet.config import NotConfigured, shown_address
from placet.errors import NotAuthorised, PlacetError, Unauthenticated, Unreachable
from placet.models import PENDING
from placet.transport.mailbox import Mailbox
from placet.transport.port import (
    FIRST_MAX_BYTES,
    CallKey,
    ConnectionLost,
    Patience,
    Reply,
    Request,
    TokenSource,
    too_large,
    unsendable,
)
from placet.transport.retry import delays, send_retrying
from placet.transport.socket import MessageTooLarge, NoWebSocket, closed_error, open_socket

_log = logging.getLogger(__name__)
# This many channels, each with two ids of 128 characters, fit into the largest message before authentication.
SUBSCRIBED_AT_ONCE = 200


@dataclass
class _Asked:
    """A request without an answer yet, and whether it was written to a connection."""

    text: str
    size: int
    answer: asyncio.Future[Reply]
    is_written: bool = False


class WsTransport:
    """The agents' half of the WebSocket protocol. It belongs to the event loop that first uses it."""

    def __init__(self, url: str, token: TokenSource, patience: Patience | None = None) -> None:
        self._url = url
        self._token = token
        self._patience = patience or Patience()
        self._mailbox = Mailbox()
        self._unanswered: dict[str, _Asked] = {}
        self._connection: ClientConnection | None = None
        self._is_believed = False
        # The size of the longest message written to this connection, even if nothing waits for its answer any more.
        self._longest = 0
        self._wanted = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None
        self._lost = ""

    async def send(self, request: Request) -> Reply:
        """The gateway's answer; see `Transport.send`.

        Raises:
            NoWebSocket: the other side does not support this protocol.
            Unauthenticated: the token was not accepted.
            Unreachable: no answer came in time.
        """
        key = _proposed_call(request)
        if key is not None:
            self._mailbox.open(key)
        reply = await send_retrying(self._send_once, request, self._patience)
        if key is not None and not (reply.ok and _is_pending(reply.body)):
            self._mailbox.close(key)
        return reply

    async def pushed(self, key: CallKey, wait_s: float) -> Mapping[str, Any] | None:
        """The decided call that the gateway pushed.

        The socket that proposed a call gets its push without a subscription. A longer wait, or a wait for a call that
        another process proposed, subscribes to the call; its snapshot has what was missed.

        Returns:
            None after `wait_s`, or if pushes may have been lost: then read the call.
        """
        soon_s = min(wait_s, self._patience.subscribe_after_s)
        body = await self._mailbox.take(key, soon_s)
        if body is not None or wait_s <= soon_s:
            return body
        self._want()
        if self._connection is not None:
            await self._try_to_send(self._connection, _subscription((key,)))
        return await self._mailbox.take(key, wait_s - soon_s)

    def forget(self, key: CallKey) -> None:
        """Stop keeping pushes of a call."""
        self._mailbox.close(key)

    async def close(self) -> None:
        """Close the connection; requests still open fail as `Unreachable`."""
        if self._runner is not None:
            self._runner.cancel()
            # Not awaited directly: its error was raised to every sender, and must not be raised by closing.
            await asyncio.wait((self._runner,))
            self._runner = None
        self._fail(Unreachable("the client was closed"))

    async def _send_once(self, request: Request, timeout_s: float) -> Reply:
        loop = asyncio.get_running_loop()
        text = request.frame_text()
        refused = unsendable(text)
        if refused is not None:
            return refused
        asked = _Asked(text, len(text.encode()), loop.create_future())
        self._unanswered[request.ref] = asked
        unsent_s = min(timeout_s, self._patience.request_s + request.waits_s)
        timers = (
            loop.call_later(unsent_s, self._time_out, asked, True),
            loop.call_later(timeout_s, self._time_out, asked, False),
        )
        try:
            self._want()
            if self._connection is not None and (self._is_believed or asked.size <= FIRST_MAX_BYTES):
                await self._write(self._connection, asked)
            return await asked.answer
        finally:
            for timer in timers:
                timer.cancel()
            self._unanswered.pop(request.ref, None)

    def _time_out(self, asked: _Asked, unsent_only: bool) -> None:
        if asked.answer.done() or (asked.is_written and unsent_only):
            return
        why = f"{shown_address(self._url)} does not answer"
        if self._connection is None and self._lost:
            why = self._lost
        asked.answer.set_exception(ConnectionLost(why, sent=asked.is_written))

    def _want(self) -> None:
        self._wanted.set()
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run())
            self._runner.add_done_callback(self._ended)

    def _ended(self, runner: asyncio.Task[None]) -> None:
        error = None if runner.cancelled() else runner.exception()
        if error is not None:
            failed = Unreachable(f"the connection could not be kept: {error!r}")
            failed.__cause__ = error
            self._fail(failed)

    async def _run(self) -> None:
        pauses = delays(self._patience)
        while True:
            await self._wanted.wait()
            served, error = await self._connect_once()
            if isinstance(error, NoWebSocket | Unauthenticated | NotAuthorised | NotConfigured):
                self._fail(error)
                return
            if isinstance(error, MessageTooLarge):
                self._refuse_longest(error)
            self._lost = str(error)
            _log.debug("connection lost: %s", error)
            if served:
                pauses = delays(self._patience)
            if not self._unanswered and not self._mailbox.awaited():
                self._wanted.clear()
            await asyncio.sleep(next(pauses))

    async def _connect_once(self) -> tuple[bool, PlacetError]:
        """Serve one connection to its end; returns whether the token was accepted on it, and why it ended."""
        served = False
        try:
            async with open_socket(self._url, self._token, self._patience.open_s) as connection:
                await self._begin(connection)
                while True:
                    if self._receive(_message(await connection.recv())) and not served:
                        served = self._is_believed = True
                        await self._send_again(connection, longer=True)
        except ConnectionClosed as closed:
            return served, closed_error(closed, served)
        except ValueError as error:
            return served, ConnectionLost(
                f"{shown_address(self._url)} sent something that is not a message: {error}"
            )
        except NotConfigured as error:
            # The token, project, authorities or proxy are wrong: a retry would fail too.
            return served, error
        except (ConnectionLost, NoWebSocket, Unauthenticated) as error:
            return served, ConnectionLost(str(error)) if served else error
        finally:
            self._connection, self._is_believed = None, False

    async def _begin(self, connection: ClientConnection) -> None:
        self._longest = 0
        waited_for = self._mailbox.awaited()
        for start in range(0, len(waited_for), SUBSCRIBED_AT_ONCE):
            await connection.send(_subscription(waited_for[start : start + SUBSCRIBED_AT_ONCE]))
        self._connection = connection
        await self._send_again(connection, longer=False)

    async def _send_again(self, connection: ClientConnection, *, longer: bool) -> None:
        """Send unanswered requests again: those over the limit before authentication if `longer`, else the rest."""
        for asked in list(self._unanswered.values()):
            if not asked.answer.done() and (asked.size > FIRST_MAX_BYTES) is longer:
                self._note_written(asked)
                await connection.send(asked.text)

    async def _write(self, connection: ClientConnection, asked: _Asked) -> None:
        self._note_written(asked)
        await self._try_to_send(connection, asked.text)

    def _note_written(self, asked: _Asked) -> None:
        asked.is_written = True
        self._longest = max(self._longest, asked.size)

    async def _try_to_send(self, connection: ClientConnection, text: str) -> None:
        try:
            await connection.send(text)
        except ConnectionClosed as closed:
            # Step 4 of the next connection sends it.
            _log.debug("not sent yet: %s", closed)

    def _receive(self, message: Mapping[str, Any]) -> bool:
        """Handle one message; returns True if it shows that the token was accepted."""
        kind = message.get("type")
        if kind == "reply":
            status, cursor = message.get("status", 500), message.get("cursor")
            self._answer(message.get("ref"), status, message.get("body"), cursor)
        elif kind == "tool_call_decided":
            self._deliver(message)
        elif kind == "snapshot":
            self._deliver_all(message.get("items", ()))
        elif kind == "resync_required":
            self._mailbox.rouse()
        elif kind == "error":
            return self._receive_error(message)
        return True

    def _receive_error(self, message: Mapping[str, Any]) -> bool:
        ref, code = message.get("ref"), message.get("code")
        if ref in self._unanswered:
            self._answer(ref, message.get("status", 400), message, None)
        elif code == "unauthenticated":
            raise Unauthenticated("unauthenticated", 401, str(message.get("detail", "")))
        else:
            _log.warning("the gateway says: %s", message.get("detail") or code)
        return False

    def _refuse_longest(self, closed: MessageTooLarge) -> None:
        sent = [one for one in self._unanswered.values() if one.is_written and not one.answer.done()]
        longest = max(sent, key=lambda one: one.size, default=None)
        # The refused request may have been abandoned meanwhile: then the others are not at fault and are sent again.
        if longest is not None and longest.size >= self._longest:
            said = f"the other side did not accept a message of {longest.size:,} bytes ({closed.detail})"
            longest.answer.set_result(too_large(said))

    def _answer(self, ref: Any, status: int, body: Any, cursor: Any) -> None:
        found = self._unanswered.get(ref)
        if found is None or found.answer.done():
            return
        if isinstance(body, dict) and isinstance(cursor, str):
            body.setdefault("cursor", cursor)
        retry_after = body.get("retry_after") if isinstance(body, Mapping) else None
        found.answer.set_result(
            Reply(status, body, retry_after if isinstance(retry_after, int | float) else None)
        )

    def _deliver_all(self, items: Iterable[Any]) -> None:
        for item in items:
            if isinstance(item, Mapping):
                self._deliver(item)

    def _deliver(self, call: Mapping[str, Any]) -> None:
        self._mailbox.deliver((str(call.get("execution_id")), str(call.get("call_id"))), call)

    def _fail(self, error: PlacetError) -> None:
        for asked in self._unanswered.values():
            if not asked.answer.done():
                asked.answer.set_exception(error)


def _message(text: str | bytes) -> Mapping[str, Any]:
    message = json.loads(text)
    if not isinstance(message, Mapping):
        raise ValueError("a message must be an object")
    return message


def _proposed_call(request: Request) -> CallKey | None:
    if request.frame is None or request.frame.type != "propose" or request.body is None:
        return None
    return request.frame.about["execution_id"], str(request.body["call_id"])


def _is_pending(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("status") in PENDING


def _subscription(keys: Sequence[CallKey]) -> str:
    channels = [f"calls:{execution_id}/{call_id}" for execution_id, call_id in keys]
    return json.dumps({"type": "subscribe", "channels": channels})
