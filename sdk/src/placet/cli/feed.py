"""The events of a chat's stream, read on a thread of its own, so that they are seen while a prompt waits."""

from __future__ import annotations

import queue
import socket
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from placet.chat_models import ChatEvent

if TYPE_CHECKING:
    from placet.models import Hold
    from placet.sync import Placet

_ENDS = ("complete", "error")
_PART = 4096


class Feed:
    """A stream's events in their order; the stream's error, if there is one, is raised after the last of them.

    The thread ends with the stream, or as the client is closed.
    """

    def __init__(self, stream: Generator[ChatEvent, None, None]) -> None:
        self._come: queue.SimpleQueue[ChatEvent | Exception | None] = queue.SimpleQueue()
        # Seen by a prompt, and not taken yet.
        self._seen: deque[ChatEvent | Exception | None] = deque()
        self._bell, self._rings = socket.socketpair()
        self._bell.setblocking(False)
        self._rings.setblocking(False)
        threading.Thread(target=self._read, args=(stream,), name="placet-chat", daemon=True).start()

    def __iter__(self) -> Iterator[ChatEvent]:
        while True:
            one = self._seen.popleft() if self._seen else self._come.get()
            if one is None:
                return
            if isinstance(one, Exception):
                raise one
            yield one

    def close(self) -> None:
        """Look at it no more; the stream itself ends when its turn does."""
        self._bell.close()
        self._rings.close()

    def closing(self, hold_id: str) -> Closing:
        """What withdraws the prompt for the answer to a hold's question."""
        return Closing(self, hold_id)

    def fileno(self) -> int:
        """A descriptor that can be read once something has come."""
        return self._bell.fileno()

    def is_over(self, hold_id: str) -> bool:
        """Returns True if the hold is closed, or the turn has ended, by what has come."""
        with suppress(BlockingIOError):
            self._bell.recv(_PART)
        with suppress(queue.Empty):
            while True:
                self._seen.append(self._come.get_nowait())
        return any(_is_end(one, hold_id) for one in self._seen)

    def _read(self, stream: Generator[ChatEvent, None, None]) -> None:
        end = None
        with closing(stream):
            try:
                for event in stream:
                    self._put(event)
            except Exception as error:
                end = error
            self._put(end)

    def _put(self, one: ChatEvent | Exception | None) -> None:
        self._come.put(one)
        # It rings already, or nobody listens any more.
        with suppress(OSError):
            self._rings.send(b".")


class Closing:
    """Watches for the end of what a prompt asks."""

    def __init__(self, feed: Feed, hold_id: str) -> None:
        self._feed = feed
        self._hold_id = hold_id

    def fileno(self) -> int:
        """See `Watch`."""
        return self._feed.fileno()

    def is_over(self) -> bool:
        """See `Watch`."""
        return self._feed.is_over(self._hold_id)


def until_closed(placet: Placet, hold: Hold) -> Generator[ChatEvent, None, None]:
    """The stream of a question by itself: its one event is that it is closed."""
    request_id = hold.request_id
    if request_id:
        placet.requests.wait(str(request_id), execution_id=hold.execution_id)
        yield ChatEvent("hitl_resolved", body=placet.holds.get(hold.hold_id).raw)


def _is_end(one: ChatEvent | Exception | None, hold_id: str) -> bool:
    if one is None or isinstance(one, Exception):
        return False
    if one.type == "hitl_resolved":
        return one.body.get("hold_id") == hold_id
    return one.type in _ENDS and one.body.get("code") != "unavailable"
