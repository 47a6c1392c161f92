"""Lines that are printed without waiting for a reader: a thread writes them, and the oldest are dropped."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

WAITING_MAX = 1000
# At the end: for a reader that is slow. One that does not read at all gets no more.
WRITTEN_WITHIN_S = 5.0


class Lines:
    """Writes lines to a descriptor in order, in a `with` block whose end waits until they are written."""

    def __init__(
        self, descriptor: int, missing: Callable[[int], str], written_within_s: float = WRITTEN_WITHIN_S
    ) -> None:
        """Write to a descriptor.

        Args:
            descriptor: a pipe, a terminal or a file. Not Python's own stream, whose lock a blocked thread would keep.
            missing: the line that stands for a number of lines that were dropped, or that could not be written.
            written_within_s: how long the end of the block waits.
        """
        self._descriptor = descriptor
        self._missing = missing
        self._written_within_s = written_within_s
        self._waiting: deque[str] = deque()
        self._dropped = 0
        self._is_closed = False
        self._changed = threading.Condition()
        # Nothing ends a write into a full pipe; the process ends without this thread.
        self._thread = threading.Thread(target=self._write_all, name="lines", daemon=True)

    def __enter__(self) -> Lines:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(self._written_within_s)

    @property
    def waiting(self) -> int:
        """The number of lines that no write has begun with."""
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """The number of lines that the next one will tell to be missing."""
        return self._dropped

    def print(self, line: str) -> None:
        """Have a line written; returns at once."""
        with self._changed:
            if len(self._waiting) == WAITING_MAX:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(line)
            self._changed.notify()

    def _write_all(self) -> None:
        while (found := self._next()) is not None:
            dropped, line = found
            lines = (self._missing(dropped), line) if dropped else (line,)
            try:
                self._write("".join(f"{one}\n" for one in lines))
            except OSError:
                # It may be closed, or a file on a full disk: what comes later may be written.
                with self._changed:
                    self._dropped += dropped + 1

    def _next(self) -> tuple[int, str] | None:
        """How many lines are missing before the next one, and that; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return None
                self._changed.wait()
            dropped, self._dropped = self._dropped, 0
            return dropped, self._waiting.popleft()

    def _write(self, text: str) -> None:
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # Who made the pipe may have made it non-blocking for both ends.
                select.select((), (self._descriptor,), ())
