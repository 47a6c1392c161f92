"""A watch on a worker's event loop: it tells, while it lasts, that the loop is blocked, and where.

Nothing else of the worker can tell it: the renewals of the leases wait for the same loop, and so does every answer of
the gateway.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from pathlib import Path
from traceback import extract_stack

from placet import clock

_log = logging.getLogger(__name__)
# A third of a turn's lease: there is time to read it before the turn is another worker's.
BLOCKED_S = 10.0
TICKS_S = 1.0
FRAMES_TOLD = 3


class LoopWatch:
    """Watches the running loop of the thread that makes it, until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._ticked_at = clock.now()
        self._told_of: float | None = None
        self._is_over = threading.Event()
        self._timer = self._loop.call_later(TICKS_S, self._tick)
        threading.Thread(target=self._watch, name="placet-loop-watch", daemon=True).start()

    def close(self) -> None:
        """Watch no more."""
        self._timer.cancel()
        self._is_over.set()

    def _tick(self) -> None:
        self._ticked_at = clock.now()
        self._timer = self._loop.call_later(TICKS_S, self._tick)

    def _watch(self) -> None:
        while not self._is_over.wait(TICKS_S):
            ticked_at = self._ticked_at
            if clock.now() - ticked_at < BLOCKED_S or self._told_of == ticked_at:
                continue
            # A process that was frozen goes on with its loop at once.
            if not self._is_over.wait(TICKS_S) and self._ticked_at == ticked_at:
                self._told_of = ticked_at
                _log.warning(
                    "the event loop is blocked for %.0f s, and no lease is renewed: an async def must await "
                    "instead (%s)",
                    clock.now() - ticked_at,
                    self._place(),
                )

    def _place(self) -> str:
        """The innermost calls of the loop's thread, the last one first: names and lines, no values."""
        frame = sys._current_frames().get(self._thread_id)
        calls = [] if frame is None else extract_stack(frame)[-FRAMES_TOLD:]
        return ", called from ".join(
            f"{call.name} in {Path(call.filename).name}, line {call.lineno}" for call in reversed(calls)
        )
