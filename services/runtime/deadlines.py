"""Deadline nudges: if no commands arrive, the timer makes the writer compare deadlines with the log's time.

A nudge decides nothing. Its id is derived from its writer, the item that is due, its time and the attempt, so that a
repeat is the same nudge. A nudge that comes early leaves no event, corrects the clock estimate, and is sent again.
"""

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from schemas import envelope
from schemas.commands import ExpireDue
from schemas.ids import derived_id
from schemas.record import OutRecord
from services.runtime.clock import LogClock
from services.runtime.executions_partition import Due

RETRY_S = 5.0
IDLE_MS = 60_000
STALE_MAX = 10_000
# Nudges are sent one by one, while commands wait.
NUDGES_AT_ONCE = 100

Send = Callable[[OutRecord], Awaitable[int]]


def _loop_time_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class Deadlines:
    """The deadlines of one partition.

    Each execution waits in one place: in the heap until its deadline by the log's time, then, after a nudge, for a
    second look. The second look is timed by a monotonic clock: by the log's time it would be hours away after a nudge
    that a wrong clock sent too early.

    Attributes:
        clock: the log's time.
        due_of: returns an execution's present deadline, which may have moved since it was put here.
        monotonic_s: seconds of a monotonic clock.
        waiting: returns the executions that may have a deadline.
        writer: the writer's name in the ids of its nudges; nudges of an earlier writer do not count.
    """

    clock: LogClock
    due_of: Callable[[bytes], Due | None]
    monotonic_s: Callable[[], float] = _loop_time_s
    writer: str = ""
    waiting: Callable[[], Iterable[bytes]] = tuple
    _heap: list[tuple[int, bytes]] = field(default_factory=list)
    _queued: dict[bytes, int] = field(default_factory=dict)
    _nudged: dict[bytes, tuple[Due, int]] = field(default_factory=dict)
    _looks: deque[tuple[float, bytes]] = field(default_factory=deque)

    def start(self) -> None:
        """Begin with the deadlines that earlier writers left."""
        self.look(self.waiting())

    def look(self, keys: Iterable[bytes]) -> None:
        """Update the deadlines of these executions, which have new events."""
        for key in keys:
            self.put(key, self.due_of(key))

    def put(self, key: bytes, due: Due | None) -> None:
        """Store an execution's next deadline, or that it has none."""
        nudged = self._nudged.get(key)
        if nudged is not None and nudged[0] == due:
            return
        self._nudged.pop(key, None)
        if due is None:
            self._queued.pop(key, None)
        else:
            self._queue(key, due)

    def wait_ms(self) -> int:
        """The time until something must be done, at most a minute."""
        waits = [IDLE_MS]
        if self._drop_stale():
            waits.append(self._heap[0][0] - self.clock.now_ms() if self.clock.known else 0)
        if self._looks:
            waits.append(math.ceil((self._looks[0][0] - self.monotonic_s()) * 1000))
        return max(0, min(waits))

    async def nudge_due(self, send: Send) -> None:
        """Send a nudge for everything due by now; each is looked at again a little later.

        As long as no record has shown the log's time, the first deadline is nudged at once, which shows it.
        """
        self._look_again()
        now_ms = self.clock.now_ms()
        sent = 0
        while (
            sent < NUDGES_AT_ONCE
            and self._drop_stale()
            and (self._heap[0][0] <= now_ms or not self.clock.known)
        ):
            at_ms, key = heapq.heappop(self._heap)
            del self._queued[key]
            due = self.due_of(key)
            if due is not None and due[0] == at_ms:
                await self._nudge(key, due, send)
                sent += 1
                if not self.clock.known:
                    return
            elif due is not None:
                self._queue(key, due)

    def _queue(self, key: bytes, due: Due) -> None:
        if self._queued.get(key) != due[0]:
            self._queued[key] = due[0]
            heapq.heappush(self._heap, (due[0], key))
            if len(self._heap) > 2 * len(self._queued) + STALE_MAX:
                # Deadlines that moved or were removed sink below the others, and would stay until their time came.
                self._heap = [(at_ms, waiting) for waiting, at_ms in self._queued.items()]
                heapq.heapify(self._heap)

    def _drop_stale(self) -> bool:
        """True if anything waits for its deadline; deadlines that moved or were removed are dropped from the top."""
        while self._heap and self._queued.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return bool(self._heap)

    def _look_again(self) -> None:
        now_s = self.monotonic_s()
        while self._looks and self._looks[0][0] <= now_s:
            _, key = self._looks.popleft()
            due = self.due_of(key)
            if due is not None and key in self._nudged:
                self._queue(key, due)

    async def _nudge(self, key: bytes, due: Due, send: Send) -> None:
        at_ms, subject_id = due
        earlier, attempts = self._nudged.get(key, (due, 0))
        attempt = attempts + 1 if earlier == due else 1
        self._nudged[key] = (due, attempt)
        self._looks.append((self.monotonic_s() + RETRY_S, key))
        name = derived_id("nudge", self.writer, key.decode(), subject_id, at_ms, attempt)
        body = ExpireDue(subject_id=subject_id, deadline_at_ms=at_ms, attempt=attempt)
        await send(envelope.nudge(body, name, key))
