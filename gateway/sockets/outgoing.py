"""What waits to be sent to one reader: answers always, pushed messages up to a bound."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

import orjson

from gateway.settings import Limits

RESYNC_DETAIL = "too much was waiting, or it is no longer at hand: subscribe again without a cursor"


@dataclass(slots=True)
class Outgoing:
    """A bounded queue. When too many pushes wait, all leave and one `resync_required` takes their place.

    `moved` is set whenever something was taken.
    """

    limits: Limits
    _frames: deque[tuple[bytes, bool]] = field(default_factory=deque)
    _pushes: int = 0
    _push_bytes: int = 0
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    @property
    def answers(self) -> int:
        """Answers that wait."""
        return len(self._frames) - self._pushes

    def answer(self, frame: bytes) -> None:
        """Queue an answer; how many wait is bounded by how many commands may be in flight."""
        self._frames.append((frame, False))
        self._ready.set()

    @property
    def has_room(self) -> bool:
        """Whether less than half of what may wait does: so much that a whole command's messages find room."""
        limits = self.limits
        return 2 * self._pushes < limits.queue_messages and 2 * self._push_bytes < limits.queue_bytes

    async def drained(self) -> None:
        """Wait until there is room, or nothing more is taken in."""
        while not self.has_room and not self.closed:
            self.moved.clear()
            await self.moved.wait()

    def push(self, frame: bytes) -> bool:
        """Queue a pushed message; False where there is no room for it."""
        if self._pushes >= self.limits.queue_messages or self._push_bytes >= self.limits.queue_bytes:
            return False
        self._frames.append((frame, True))
        self._pushes += 1
        self._push_bytes += len(frame)
        self._ready.set()
        return True

    def drop_pushes(self) -> None:
        """Forget the pushed messages that wait; answers stay."""
        self._frames = deque(entry for entry in self._frames if not entry[1])
        self._pushes = self._push_bytes = 0

    def close(self) -> None:
        """Nothing more will come; what waits is still taken."""
        self.closed = True
        self._ready.set()

    async def take(self) -> bytes | None:
        """The next frame; None when it is closed and empty."""
        while not self._frames:
            if self.closed:
                return None
            self._ready.clear()
            await self._ready.wait()
        frame, is_push = self._frames.popleft()
        self.moved.set()
        if is_push:
            self._pushes -= 1
            self._push_bytes -= len(frame)
        return frame


def resync_frame(cursor: str) -> bytes:
    """The message that tells a reader to look anew."""
    return orjson.dumps({"type": "resync_required", "cursor": cursor, "detail": RESYNC_DETAIL})
