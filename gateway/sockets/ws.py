"""The WebSocket endpoint `/v1/ws`, subprotocol `placet.v1`.

Before anything is served, in this order:
1. a token in the URL or a doubled header (`gateway.server.request_heads`), or a browser's foreign origin, is refused
   before the socket is accepted;
2. the bearer header, or the first message within 5 s, must contain a valid token;
3. its subject must not have the maximum number of sockets already;
4. the socket lives until it is closed, its token expires or becomes invalid, or its subject's roles change: this is
   checked for every message in and out, and every few seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import orjson
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from gateway.identity.authentication import PROJECT_HEADER, Authentication, project_of
from gateway.problems import Problem, message_of, not_found, response, still_starting
from gateway.server.connections import connection_of, gone, mark_request_authenticated, uncounted
from gateway.server.websocket import TEXTS, WRITTEN_BYTES
from gateway.service.served import Served
from gateway.shares.budget import UNFINISHED
from gateway.shares.intake import taken_in
from gateway.shares.rates import Buckets
from gateway.shares.work import Owner, Work, owner_of, processor_s
from gateway.sockets.close import FAILED, NOT_AUTHENTICATED, NOT_AUTHORISED, TOO_FAST, TRY_LATER
from gateway.sockets.message_fields import check_fields
from gateway.sockets.outgoing import OutgoingFrames
from gateway.sockets.session import Session
from gateway.sockets.snapshots import View, unchanged
from gateway.sockets.verbs import Frame, Verb, frame_of
from gateway.strictjson import parse_object
from schemas.refusals import Refusal

SUBPROTOCOL = "placet.v1"
FRAME_MAX_BYTES = 1024 * 1024
# The close code for a refusal; every other refusal has the code for a failed authentication.
CODES = {
    Refusal.NOT_AUTHORISED: NOT_AUTHORISED,
    Refusal.QUOTA: TRY_LATER,
    Refusal.UNAVAILABLE: TRY_LATER,
}
CLOSE_REASON_BYTES = 100
# A flood is answered with refusals for a while; a client that does not stop is disconnected.
FLOOD_REFUSALS_MAX = 1_000
# The exceptions with which the parts of a socket normally end.
ENDS = (asyncio.CancelledError, WebSocketDisconnect, Problem)
# Marks the event of a message of `placet.v1` that an endpoint in front of this one sends by itself.
OWN = "placet.own"


def _unchanged(frame: Frame) -> Frame:
    return frame


@dataclass(frozen=True)
class Dialect:
    """The messages of the clients of an endpoint; by default those of `placet.v1`.

    Attributes:
        parse: reads a message, on a thread if it is long; raises `Problem`.
        translate: returns the message of `placet.v1` for it; raises `Problem`.
        verbs: those that there are beside `placet.v1`.
        view: what snapshots show.
        tells_hidden: whether it wants to be told of holds that its client may no longer see.
    """

    parse: Callable[[bytes], Frame] = frame_of
    translate: Callable[[Frame], Frame] = _unchanged
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    view: View = unchanged
    tells_hidden: bool = False


PLACET_V1 = Dialect()


async def endpoint(websocket: WebSocket, dialect: Dialect = PLACET_V1) -> None:
    """Serve one WebSocket, whose client speaks a dialect."""
    gateway: Served = websocket.app.state.gateway
    if (problem := _unwelcome(websocket, gateway)) is not None:
        await websocket.send_denial_response(response(problem))
        return
    # RFC 6455, section 4.2.2: of protocols that it does not speak a server chooses none, and the client sees that.
    offered = websocket.scope.get("subprotocols", [])
    await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
    with suppress(WebSocketDisconnect):
        try:
            authentication = await _authenticate(websocket, gateway)
            owner = owner_of(authentication.claims.actor)
            mark_request_authenticated(websocket.scope, owner)
            with gateway.socket_limit.open(authentication.claims.actor), _charged(websocket, gateway, owner):
                await _serve(websocket, gateway, authentication, dialect)
        except Problem as refused:
            await _turn_away(websocket, refused)
        except Exception:
            # The client may be gone, or the socket already closed: the original failure is what must be raised.
            with suppress(WebSocketDisconnect, RuntimeError):
                await websocket.close(FAILED, "the gateway has failed: connect again")
            raise


@contextmanager
def _charged(websocket: WebSocket, gateway: Served, owner: Owner) -> Iterator[None]:
    """Let the subject pay for what it sends, also before it is a message."""
    connection = connection_of(websocket.scope)
    if connection is None:
        yield
        return
    connection.charge = partial(gateway.work.received, owner)
    with gateway.budget.holding(owner, UNFINISHED) as held:
        connection.keep = held.keep
        try:
            yield
        finally:
            connection.keep = uncounted


async def nowhere(websocket: WebSocket) -> None:
    """Refuse a WebSocket at any other address."""
    await websocket.send_denial_response(response(not_found("resource")))


def _unwelcome(websocket: WebSocket, gateway: Served) -> Problem | None:
    origin = websocket.headers.get("origin")
    if origin is not None and not is_known_origin(origin, gateway):
        return Problem(Refusal.NOT_AUTHORISED, "pages of this origin may not open a WebSocket here")
    if not gateway.caught_up:
        return still_starting()
    return None


def is_known_origin(origin: str, gateway: Served) -> bool:
    """Return True if a browser page of this origin may open a WebSocket: the gateway's own, or a configured one."""
    settings = gateway.settings
    if origin in settings.origins:
        return True
    split = urlsplit(origin)
    try:
        port = split.port
    except ValueError:
        return False
    own_ports = {gateway.port, settings.bridge_port or gateway.port}
    own_hosts = {settings.host, "127.0.0.1", "localhost", "::1"}
    return split.scheme == "http" and split.hostname in own_hosts and port in own_ports


async def _authenticate(websocket: WebSocket, gateway: Served) -> Authentication:
    if "authorization" in websocket.headers:
        return await gateway.authenticator.of_headers(websocket.headers)
    try:
        async with asyncio.timeout(gateway.settings.limits.authenticate_s):
            first = parse_object(_raw(await _receive(websocket)))
    except TimeoutError as error:
        raise Problem(Refusal.UNAUTHENTICATED, "no token arrived in time: authenticate first") from error
    token, project = first.get("token"), first.get("project", "")
    if first.get("type") != "authenticate" or not isinstance(token, str) or not isinstance(project, str):
        raise Problem(Refusal.UNAUTHENTICATED, "the first message must be authenticate with a token")
    check_fields(first, "authenticate")
    named = project_of(websocket.headers)
    if named and project and named != project:
        raise Problem(Refusal.INVALID, f"the header {PROJECT_HEADER} and the message name different projects")
    return await gateway.authenticator.admit(token, project or named)


async def _turn_away(websocket: WebSocket, problem: Problem) -> None:
    await websocket.send_text(orjson.dumps(message_of(problem)).decode())
    await _close(websocket, problem)


async def _close(websocket: WebSocket, problem: Problem) -> None:
    code = CODES.get(problem.code, NOT_AUTHENTICATED)
    # A close frame has a limited length, and no partial character.
    reason = problem.detail.encode()[:CLOSE_REASON_BYTES].decode(errors="ignore")
    await websocket.close(code, reason)


async def _serve(
    websocket: WebSocket, gateway: Served, authentication: Authentication, dialect: Dialect
) -> None:
    """Read and write until one of them ends, the token is no longer valid or the client is gone."""
    limits, claims = gateway.settings.limits, authentication.claims
    owner = owner_of(claims.actor)
    out = OutgoingFrames(limits, owner, gateway.budget)
    own = (dialect.verbs, dialect.view, dialect.tells_hidden)
    session = Session(gateway.gate.of(claims.actor), gateway.hub, claims, limits, gateway.metrics, out, *own)
    session.send_authenticated()
    reader = _Reader(websocket, session, gateway.work, authentication, dialect)
    reading = asyncio.create_task(reader.read())
    write = partial(_write, websocket, out, authentication, gateway.work)
    writing = asyncio.create_task(gateway.work.sent(owner, write))
    authenticated = asyncio.create_task(authentication.until_invalid())
    overrun = asyncio.create_task(out.unread.wait())
    # A message can wait for long until it is its subject's turn: whoever is gone must not keep the place meanwhile.
    leaving = asyncio.create_task(gone(websocket.scope))
    parts = {reading, writing, authenticated, overrun, leaving}
    gateway.metrics.sockets.inc()
    try:
        await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gateway.metrics.sockets.dec()
        session.close()
        for part in parts:
            part.cancel()
        ended = await asyncio.gather(reading, writing, authenticated, return_exceptions=True)
    _raise_unexpected(ended)
    refused = next((error for error in ended if isinstance(error, Problem)), None)
    if refused is not None:
        await _close(websocket, refused)
    elif out.unread.is_set():
        await websocket.close(TOO_FAST, "answers are not read")
    elif ended[0] is None:
        await websocket.close(TOO_FAST, "too many messages")
    elif ended[1] is None:
        await websocket.close(TRY_LATER, "what you missed cannot be read now: come back with your cursor")


def _raise_unexpected(ended: Sequence[BaseException | None]) -> None:
    for error in ended:
        if error is not None and not isinstance(error, ENDS):
            raise error


@dataclass(frozen=True)
class _Reader:
    """Takes the messages of one client."""

    websocket: WebSocket
    session: Session
    work: Work
    authentication: Authentication
    dialect: Dialect

    async def read(self) -> None:
        """Take messages until there are too many."""
        messages, refused = Buckets(self.session.limits.messages_per_s), 0
        while refused < FLOOD_REFUSALS_MAX:
            # A socket is silent for most of its life: nothing here keeps a message while it waits for something.
            wait_s = await self._take(await _receive(self.websocket), messages)
            if wait_s is None:
                refused += 1
                continue
            if wait_s:
                await asyncio.sleep(wait_s)
            if self.session.is_full:
                await self.session.room()

    async def _take(self, event: Message, messages: Buckets) -> float | None:
        """Take one message.

        Returns:
            The seconds until the next one can be taken; None if this one was refused because it came too fast.
        """
        if OWN in event:
            return await self._handle(_raw(event), PLACET_V1)
        if messages.wait_s(self.session, time.monotonic()) > 0.0:
            self.session.refuse_flood()
            return None
        return await self._handle(_raw(event), self.dialect)

    async def _handle(self, raw: bytes, dialect: Dialect) -> float:
        owner = owner_of(self.session.actor)
        parsed = await taken_in(self.work, owner, raw, dialect.parse)
        # The check comes last: nothing is awaited between it and the message's command.
        await self.authentication.check()
        started = processor_s()
        self.session.handle(lambda: dialect.translate(parsed()))
        return self.work.handled(owner, processor_s() - started)


async def _write(
    websocket: WebSocket, out: OutgoingFrames, authentication: Authentication, work: Work
) -> None:
    while texts := await out.take_some(WRITTEN_BYTES):
        await authentication.check()
        await websocket.send({"type": "websocket.send", TEXTS: texts})
        await work.may_send(out.owner)


async def _receive(websocket: WebSocket) -> Message:
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message


def _raw(message: Message) -> bytes:
    text: str | None = message.get("text")
    return bytes(message["bytes"]) if text is None else text.encode()
