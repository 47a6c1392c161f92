"""Deadline nudges: when nothing else arrives, the timer makes the writer look at the log's time.

A nudge decides nothing. Its id is made of what is due, when, and the attempt, so that a repeat is the same
nudge; one that comes early leaves no event, teaches the clock, and is sent again.
"""

import heapq
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from schemas import envelope
from schemas.commands import ExpireDue
from schemas.ids import derived_id
from schemas.record import OutRecord
from services.runtime.clock import LogClock
from services.runtime.executions_partition import Due

RETRY_MS = 5_000
IDLE_MS = 60_000

Send = Callable[[OutRecord], Awaitable[int]]


@dataclass(slots=True)
class Deadlines:
    """What is due when on one partition.

    Attributes:
        clock: the log's time.
        due_of: the present deadline of an execution, which may have moved since it was put here.
    """

    clock: LogClock
    due_of: Callable[[bytes], Due | None]
    _heap: list[tuple[int, bytes]] = field(default_factory=list)
    _attempts: dict[tuple[bytes, Due], int] = field(default_factory=dict)

    def put(self, key: bytes, due: Due | None) -> None:
        """Remember an execution's next deadline."""
        if due is not None:
            heapq.heappush(self._heap, (due[0], key))

    def wait_ms(self) -> int:
        """How long until something is due, at most a minute."""
        if not self._heap:
            return IDLE_MS
        return max(0, min(IDLE_MS, self._heap[0][0] - self.clock.now_ms()))

    async def nudge_due(self, send: Send) -> None:
        """Send a nudge for everything due by now; each is looked at again a little later."""
        now_ms = self.clock.now_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            _, key = heapq.heappop(self._heap)
            due = self.due_of(key)
            if due is None:
                continue
            if due[0] > now_ms:
                heapq.heappush(self._heap, (due[0], key))
                continue
            await send(self._nudge(key, due))
            heapq.heappush(self._heap, (now_ms + RETRY_MS, key))

    def _nudge(self, key: bytes, due: Due) -> OutRecord:
        at_ms, subject_id = due
        attempt = self._attempts.get((key, due), 0) + 1
        if len(self._attempts) > 10_000:
            self._attempts.clear()
        self._attempts[key, due] = attempt
        command_id = derived_id("nudge", key.decode(), subject_id, at_ms, attempt)
        body = ExpireDue(subject_id=subject_id, deadline_at_ms=at_ms, attempt=attempt)
        return envelope.nudge(body, command_id, key)
