"""The queue of messages to one reader: it takes every answer, and pushed messages up to a limit.

An answer keeps its cursor only as long as everything that the cursor covers is before it in the queue: when pushed
messages are dropped, the waiting answers lose their cursors.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from gateway.pushes.resyncs import Resync
from gateway.settings import Limits
from gateway.shares.budget import Budget
from gateway.shares.work import Owner

# With this many bytes of answers unread, no more commands are read.
ANSWERS_MAX_BYTES = 1024 * 1024
# A reader that keeps up has fewer bytes of answers waiting. One with more is cut off if its subject has no room left.
UNREAD_BYTES = 16 * 1024
RESYNC_DETAILS = {
    Resync.TOO_SLOW: "too much was waiting: subscribe again without a cursor, or with that of your last message",
    Resync.GONE: "what follows your cursor is no longer available: subscribe again without a cursor",
}


class _Waiting(NamedTuple):
    """A message in the queue. An answer's `cursor` is kept apart from it, so that it can still be removed."""

    frame: bytes
    is_push: bool
    size: int
    cursor: str | None = None

    def written(self) -> bytes:
        """Return the message as it is sent."""
        return self.frame if self.cursor is None else with_cursor(self.frame, self.cursor)


@dataclass(slots=True)
class OutgoingFrames:
    """A bounded queue. When too many pushes wait, all are dropped and one `resync_required` takes their place.

    A message counts, here and for its subject, until the reader has taken it. Pushes that arrive while a snapshot is
    being written wait behind it.

    `held` is, while a snapshot is being written, the cursor of the snapshot's beginning.
    `moved` is set whenever messages were taken, and at the end.
    `unread` is set when more answers wait than a reader may leave unread.
    """

    limits: Limits
    owner: Owner
    budget: Budget
    held: str | None = None
    _frames: deque[_Waiting] = field(default_factory=deque)
    _behind: list[bytes] | None = None
    _pushes: int = 0
    _push_bytes: int = 0
    _answer_bytes: int = 0
    _sending: int = 0
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    unread: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    @property
    def is_full(self) -> bool:
        """True if so many answers wait that no more commands should be read."""
        answers = len(self._frames) - self._pushes
        return answers >= self.limits.in_flight or self._answer_bytes >= ANSWERS_MAX_BYTES

    @property
    def is_empty(self) -> bool:
        """True if no message waits."""
        return not self._frames and self._behind is None

    def answer(self, frame: bytes, cursor: str | None = None) -> None:
        """Queue an answer; the limit on commands in flight also limits the answers that wait.

        Args:
            frame: a JSON object.
            cursor: covers what was queued before, and nothing else.
        """
        size = len(frame) + len(cursor or "")
        if self._answer_bytes > UNREAD_BYTES and not self.budget.has_room(self.owner, size):
            self.unread.set()
        self._frames.append(_Waiting(frame, False, size, cursor))
        self._answer_bytes += size
        self.budget.take(self.owner, size)
        self._ready.set()

    @property
    def has_room(self) -> bool:
        """True if less than half of the limit is waiting, so that a whole command's messages have room."""
        limits = self.limits
        return 2 * self._pushes < limits.queue_messages and 2 * self._push_bytes < limits.queue_bytes

    async def drained(self) -> None:
        """Wait until there is room, or the queue is closed."""
        while not self.has_room and not self.closed:
            self.moved.clear()
            await self.moved.wait()

    def push(self, frame: bytes) -> bool:
        """Queue a pushed message; return False if there is no room for it."""
        waiting = self._pushes + len(self._behind or ())
        if waiting >= self.limits.queue_messages or self._push_bytes >= self.limits.queue_bytes:
            return False
        if not self.budget.has_room(self.owner, len(frame)):
            return False
        self.budget.take(self.owner, len(frame))
        self._push_bytes += len(frame)
        if self._behind is not None:
            self._behind.append(frame)
        else:
            self._queue_push(frame)
        return True

    def hold_back(self, cursor: str) -> None:
        """Hold pushes back while a snapshot is being written, until `show`, or until they are dropped.

        Args:
            cursor: the cursor of the snapshot's beginning.
        """
        self._behind, self.held = [], cursor

    def show(self, frames: Sequence[bytes]) -> bool:
        """Queue a snapshot's messages, and behind them the pushes that arrived meanwhile.

        Returns:
            False if there is no room: then the snapshot was not queued.
        """
        behind, self._behind, self.held = self._behind or [], None, None
        size = sum(map(len, frames))
        has_room = self.budget.has_room(self.owner, size) and self._push_bytes < self.limits.queue_bytes
        if has_room:
            self.budget.take(self.owner, size)
            self._push_bytes += size
            for frame in frames:
                self._queue_push(frame)
        for frame in behind:
            self._queue_push(frame)
        return has_room

    def drop_pushes(self) -> None:
        """Drop the waiting pushes; answers stay, without cursors, which would cover the lost messages."""
        self._frames = deque(entry._replace(cursor=None) for entry in self._frames if not entry.is_push)
        self.budget.give_back(self.owner, self._push_bytes)
        self._pushes = self._push_bytes = 0
        self._behind = self.held = None

    def close(self) -> None:
        """Accept no more messages; those that wait can still be taken."""
        self.closed = True
        self._ready.set()
        # What waits for room waits no longer: nobody takes anything from a connection that is gone.
        self.moved.set()

    def discard(self) -> None:
        """Drop everything that waits, because it has no reader any more."""
        self.close()
        self.drop_pushes()
        self.budget.give_back(self.owner, self._answer_bytes + self._sending)
        self._answer_bytes = self._sending = 0
        self._frames.clear()

    async def take_some(self, bytes_max: int) -> list[bytes]:
        """Return the next frames, at least one and no more than fit; none when the queue is closed and empty.

        The call means that the previous frames were sent.
        """
        if self._sending:
            self.budget.give_back(self.owner, self._sending)
            self._sending = 0
        while not self._frames:
            if self.closed:
                return []
            self._ready.clear()
            await self._ready.wait()
        self.moved.set()
        taken = [self._next()]
        while self._frames and self._sending + self._frames[0].size <= bytes_max:
            taken.append(self._next())
        return taken

    def _next(self) -> bytes:
        entry = self._frames.popleft()
        self._sending += entry.size
        if entry.is_push:
            self._pushes -= 1
            self._push_bytes -= entry.size
        else:
            self._answer_bytes -= entry.size
        return entry.written()

    def _queue_push(self, frame: bytes) -> None:
        self._frames.append(_Waiting(frame, True, len(frame)))
        self._pushes += 1
        self._ready.set()


def with_cursor(frame: bytes, cursor: str) -> bytes:
    """Add a cursor to a message (a JSON object) that has none."""
    return b'%b,"cursor":"%b"}' % (frame[:-1], cursor.encode())


def resync_frame(cursor: str, reason: Resync) -> bytes:
    """Return the message that tells a reader to subscribe anew; `cursor` begins anew as well."""
    told = {"type": "resync_required", "cursor": cursor, "reason": reason, "detail": RESYNC_DETAILS[reason]}
    return orjson.dumps(told)
