"""One authenticated WebSocket: messages in, answers and pushes out, pipelined.

Between a message and its command nothing here awaits, unless a row is not cached, a sensitive value must be sealed or
a question must be found by its id; so the commands of a socket are sent in the order in which its messages arrived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.live.outcome import Outcome
from gateway.metrics import Metrics
from gateway.operations.calls import PENDING
from gateway.operations.plan import (
    Gate,
    Make,
    Plan,
    Reply,
    at_once,
    begun,
    carry_out,
    in_time,
    row_of,
    unanswered,
)
from gateway.problems import Problem, message_of, written
from gateway.pushes.hub import Hub
from gateway.pushes.resyncs import Resync
from gateway.settings import Limits
from gateway.shares.work import owner_of
from gateway.sockets.message_fields import check_fields, type_of_message
from gateway.sockets.outgoing import OutgoingFrames, resync_frame
from gateway.sockets.snapshots import View, begin_anew, unchanged
from gateway.sockets.subscriptions import subscribe
from gateway.sockets.tracing import message_span
from gateway.sockets.verbs import VERBS, Frame, UnreadFrame, Verb, ref_of
from projections.folds.rows import Row
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.refusals import Refusal
from schemas.token import Claims
from vitals import tracing

logger = logging.getLogger(__name__)

# A message to the endpoint, which never passes it on: its client may not know of the hold.
HIDDEN = "hold_hidden"


@dataclass(slots=True, eq=False)
class Session:
    """The state of a socket. It is a receiver of the hub.

    `own` are messages of its endpoint beside those of `placet.v1`: the endpoint itself writes them, so their fields
    are not checked here. `view` is what its snapshots show, and `tells_hidden` whether it says which holds its client
    may no longer see.
    """

    gate: Gate
    hub: Hub
    claims: Claims
    limits: Limits
    metrics: Metrics
    out: OutgoingFrames
    own: Mapping[str, Verb] = field(default_factory=dict)
    view: View = unchanged
    tells_hidden: bool = False
    channels: set[str] = field(default_factory=set)
    behind: str | None = None
    catching: set[str] = field(default_factory=set)
    in_flight: int = 0
    cursor_name: str = "cursor"
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _subscribing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def actor(self) -> Actor:
        """The client."""
        return self.claims.actor

    def handle(self, read: Callable[[], Frame]) -> None:
        """Handle one message; a faulty message gets an error as its answer.

        Args:
            read: returns the parsed message, or raises what is wrong with it.
        """
        self.metrics.messages.inc()
        ref: str | None = None
        try:
            frame = read()
            ref = ref_of(frame)
            if tracing.spans is None:
                self._take(frame, ref)
            else:
                with message_span(tracing.spans, frame, self.actor, self.own):
                    self._take(frame, ref)
        except UnreadFrame as unread:
            self._refuse(unread.ref, unread)
        except Problem as problem:
            self._refuse(ref, problem)

    def send_authenticated(self) -> None:
        """Tell the client that its token is valid, and for which subject and roles."""
        actor = self.actor
        self._answer({"type": "authenticated", "subject": actor.subject, "roles": actor.roles})

    def refuse_flood(self) -> None:
        """Refuse a message that came too fast, without parsing it."""
        self._refuse(None, Problem(Refusal.QUOTA, "too many messages: slow down", retry_after=1))

    @property
    def has_room(self) -> bool:
        """True if its queue has room for the messages of a whole command."""
        return self.out.has_room

    @property
    def is_closed(self) -> bool:
        """True if its queue takes no more messages."""
        return self.out.closed

    async def drained(self) -> None:
        """Wait until there is such room, or the queue is closed."""
        await self.out.drained()

    @property
    def is_full(self) -> bool:
        """True if the maximum number of commands is in flight, or answers wait for a slow reader."""
        return self.in_flight >= self.limits.in_flight or self.out.is_full

    async def room(self) -> None:
        """Wait until the socket may send another command."""
        while self.is_full:
            self.out.moved.clear()
            await self.out.moved.wait()

    def push(self, message: bytes) -> None:
        """Queue a pushed message; a reader that is too slow for its messages must subscribe anew."""
        if not self.out.closed and not self.out.push(message):
            self.resync(Resync.TOO_SLOW)

    def hide(self, hold: HoldRow) -> None:
        """Tell an endpoint that keeps account of what its client was shown; behind what was pushed before."""
        if self.tells_hidden:
            hidden = {"type": HIDDEN, "hold_id": hold["hold_id"], "request_id": hold["request_id"]}
            self.push(orjson.dumps(hidden))

    def resync(self, reason: Resync) -> None:
        """Drop the waiting pushes and every subscription, and notify the client."""
        self.hub.unsubscribe(self, self.channels)
        self.catching.clear()
        self.behind = None
        self.out.drop_pushes()
        self.out.answer(resync_frame(begin_anew(self.gate.live.position), reason))
        self.metrics.resyncs.inc()

    def give_up(self, problem: Problem) -> None:
        """Send the pushes that wait, and the problem, with the cursor that they lead to; then end."""
        self._refuse(None, problem)
        self.out.close()

    def close(self) -> None:
        """Stop all input and output."""
        self.out.discard()
        self.hub.forget(self)
        for task in self._tasks:
            task.cancel()

    def _take(self, frame: Frame, ref: str | None) -> None:
        try:
            self._dispatch(frame, ref)
        except Problem as problem:
            self._refuse(ref, problem)

    def _dispatch(self, frame: Frame, ref: str | None) -> None:
        said = frame.get("type")
        if isinstance(said, str) and (own := self.own.get(said)) is not None:
            self._ask(own(self.gate, self.claims, frame, ref), ref)
            return
        kind = type_of_message(frame)
        check_fields(frame, kind)
        if (verb := VERBS.get(kind)) is not None:
            self._ask(verb(self.gate, self.claims, frame, ref), ref)
        elif kind == "subscribe":
            # Catching up keeps its own share, in slices (`catching_up`): only the subscription itself is priced.
            self._spawn(self._subscribe(frame), ref, priced=False)
        elif kind == "unsubscribe":
            channels = _channels(frame)
            self.catching.difference_update(channels)
            self._spawn(self._unsubscribe(channels), ref)
        elif kind == "ping":
            self._answer({"type": "pong", "ref": ref})
        else:
            raise Problem(Refusal.INVALID, "this connection is authenticated already")

    def _ask(self, make: Make, ref: str | None) -> None:
        plan = begun(self.gate, make)
        if isinstance(plan, Plan):
            self._send(plan, ref)
        else:
            self._spawn(self._prepare_and_send(plan, ref), ref)

    def _send(self, plan: Plan, ref: str | None) -> None:
        self.in_flight += 1
        answered = tracing.carried(lambda outcome: self._answered(plan, ref, outcome))
        self.gate.asker.ask(plan.ask, answered, plan.timeout_s)

    def _answered(self, plan: Plan, ref: str | None, outcome: Outcome | Problem | None) -> None:
        # Called from the tail: no exception may escape into it.
        self.in_flight -= 1
        self.out.moved.set()
        if self.out.closed:
            return
        try:
            self._conclude(plan, ref, outcome)
        except Problem as problem:
            self._refuse(ref, problem)
        except Exception:
            logger.exception("an answer could not be written")
            self._refuse(ref, Problem(Refusal.UNAVAILABLE, "the answer could not be written", retry_after=1))

    def _conclude(self, plan: Plan, ref: str | None, outcome: Outcome | Problem | None) -> None:
        if isinstance(outcome, Problem):
            raise outcome
        row = row_of(self.gate, plan)
        if outcome is None:
            self._expect(plan, row)
            self._reply(ref, unanswered(plan))
        elif (problem := plan.refusal(outcome)) is not None:
            self._expect(plan, row)
            raise problem
        elif (reply := at_once(plan, outcome, row)) is not None:
            self._expect(plan, row)
            self._reply(ref, reply)
        else:
            self._spawn(self._reply_in_time(plan, ref, outcome), ref)

    def _expect(self, plan: Plan, row: Row | None) -> None:
        """Make sure that the sender gets the decision on a call that still waits, without a subscription."""
        subject = plan.subject
        if subject is not None and subject.kind == "call" and (row is None or row["status"] in PENDING):
            self.hub.expect_decision(self, (subject.key, subject.id))

    async def _prepare_and_send(self, prepare: Callable[[], Awaitable[Plan]], ref: str | None) -> None:
        plan = await prepare()
        if plan.first is None:
            self._send(plan, ref)
        else:
            self._reply(ref, await carry_out(self.gate, plan))

    async def _reply_in_time(self, plan: Plan, ref: str | None, outcome: Outcome) -> None:
        reply = await in_time(self.gate, plan, outcome)
        self._expect(plan, row_of(self.gate, plan))
        self._reply(ref, reply)

    async def _subscribe(self, frame: Frame) -> None:
        cursor = frame.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise Problem(Refusal.INVALID, "cursor must be a text")
        # One at a time: while past messages are sent, no live message may be inserted between them.
        async with self._subscribing:
            asked = subscribe(self.hub, self.gate, self, _channels(frame), cursor, (), self.view)
            catching_up = await self.gate.work.priced(owner_of(self.actor), asked)
            if catching_up is not None:
                await catching_up

    async def _unsubscribe(self, channels: list[str]) -> None:
        async with self._subscribing:
            self.hub.unsubscribe(self, channels)

    def _spawn(self, work: Coroutine[Any, Any, None], ref: str | None, *, priced: bool = True) -> None:
        self.in_flight += 1
        doing = self.gate.work.priced(owner_of(self.actor), work) if priced else work
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(tracing.carried(lambda done: self._finished(done, work, ref)))

    def _finished(self, task: asyncio.Task[None], work: Coroutine[Any, Any, None], ref: str | None) -> None:
        # A task cancelled before its first step closes its own coroutine, but not the inner one.
        work.close()
        self._tasks.discard(task)
        self.in_flight -= 1
        self.out.moved.set()
        error = None if task.cancelled() else task.exception()
        if error is None or self.out.closed:
            return
        if not isinstance(error, Problem):
            logger.error("a message could not be handled", exc_info=error)
            error = Problem(Refusal.UNAVAILABLE, "the message could not be handled", retry_after=1)
        self._refuse(ref, error)

    def _reply(self, ref: str | None, reply: Reply) -> None:
        head = b'{"type":"reply","ref":%b,"status":%d,"body":' % (orjson.dumps(ref), reply.status)
        self.out.answer(head + reply.body + b"}", self._cursor())

    def _refuse(self, ref: str | None, problem: Problem) -> None:
        if tracing.spans is not None:
            tracing.spans.note({"placet.refusal_code": problem.code})
            if problem.status >= 500:
                tracing.spans.fail(str(problem.status))
        if ref is None:
            self._answer(message_of(problem))
        else:
            self._reply(ref, Reply(problem.status, written(problem.document())))

    def _cursor(self) -> str | None:
        """Return the cursor from which this socket can continue: exactly what was sent to its subscriptions.

        None without a subscription: the reader may have missed messages since an earlier connection, and must keep
        the cursor that it has.
        """
        if (known := self.behind or self.out.held) is not None:
            return known
        return self.gate.live.position.cursor() if self.channels else None

    def _answer(self, message: dict[str, Any]) -> None:
        self.out.answer(orjson.dumps(message), self._cursor())


def _channels(frame: Frame) -> list[str]:
    channels = frame.get("channels")
    if not isinstance(channels, list) or not all(isinstance(channel, str) for channel in channels):
        raise Problem(Refusal.INVALID, "channels must be a list of names")
    return channels
