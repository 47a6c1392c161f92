"""The WebSocket endpoint `/human-bridge`: the questions and answers of `/v1/ws`, in the bridge's own few messages.

It is `/v1/ws` in another dialect (`gateway.sockets.bridge_messages`): authentication, limits, backpressure and
refusals are those of that endpoint, which also reads the clients' messages. Two messages are its own:

* an answer: a task may have been closed long before the client came, and is then found as by REST, so that the
  decider refuses the answer by its reason and records it;
* a question: its client cannot name an agent, so its token must belong to one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from gateway.operations.human_input import check_is_agent, plan_answer, plan_answer_to
from gateway.operations.plan import Gate, Make, Plan, Unprepared
from gateway.server.websocket import TEXTS
from gateway.sockets import ws
from gateway.sockets.bridge_messages import ANSWER, PUBLISH, BridgeMessages
from gateway.sockets.verbs import VERBS, Frame, Verb
from gateway.strictjson import parse_object
from schemas.token import Claims


def _answer(gate: Gate, claims: Claims, frame: Frame, _: str | None) -> Make:
    # Without the ref as its key: the same answer sent again, here or by REST, is the same decision.
    task_id, hold_id, said = frame["task_id"], frame["hold_id"], (frame["response"], frame["feedback"])
    if hold_id is not None:
        return lambda: plan_answer_to(gate, claims, task_id, hold_id, *said)

    def make() -> Plan:
        raise Unprepared(lambda: plan_answer(gate, claims, task_id, *said))

    return make


def _question(gate: Gate, claims: Claims, frame: Frame, key: str | None) -> Make:
    def make() -> Plan:
        check_is_agent(claims.actor)
        return VERBS["request"](gate, claims, frame, key)()

    return make


OWN: Mapping[str, Verb] = {ANSWER: _answer, PUBLISH: _question}


class HumanBridge:
    """The application behind the route."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client of the bridge."""
        bridge = _Bridge(receive, send)
        try:
            await ws.endpoint(WebSocket(scope, bridge.receive, bridge.send), bridge.dialect)
        finally:
            bridge.close()


class _Bridge:
    """Stands between a client and the endpoint `/v1/ws`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._messages = BridgeMessages()
        messages = self._messages
        self.dialect = ws.Dialect(_parsed, messages.from_client, OWN, messages.view, tells_hidden=True)
        self._woken = asyncio.Event()
        self._reading: asyncio.Future[Message] | None = None

    async def receive(self) -> Message:
        """The next event for the endpoint: the client's, or a message of the bridge's own."""
        while not self._messages.own:
            if (event := await self._next()) is not None:
                return event
        return _text(orjson.dumps(self._messages.own.popleft()))

    async def send(self, event: Message) -> None:
        """Pass an event of the endpoint on to the client."""
        if event["type"] != "websocket.send":
            await self._send(event)
            return
        texts = event.get(TEXTS) or (event["text"].encode(),)
        told: list[bytes] = []
        for text in texts:
            told += map(orjson.dumps, self._messages.to_client(orjson.loads(text)))
        if self._messages.own:
            self._woken.set()
        if told:
            await self._send({"type": "websocket.send", TEXTS: told})

    def close(self) -> None:
        """Read nothing more."""
        if self._reading is not None:
            self._reading.cancel()

    async def _next(self) -> Message | None:
        """The client's next event; None if the bridge has a message of its own before."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._receive())
        self._woken.clear()
        waking = asyncio.ensure_future(self._woken.wait())
        try:
            both: set[asyncio.Future[Any]] = {self._reading, waking}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
        if not self._reading.done():
            return None
        event, self._reading = self._reading.result(), None
        return event


def _parsed(raw: bytes) -> Frame:
    """Parse a client's message.

    Raises:
        Problem: it is no JSON object. Its `ref` is not looked for: the bridge has none of the client's.
    """
    return parse_object(raw)


def _text(message: bytes) -> Message:
    return {"type": "websocket.receive", "text": message.decode(), ws.OWN: True}
