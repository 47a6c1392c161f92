"""The numbers of equal calls within a run."""

from __future__ import annotations

import threading
from collections import defaultdict
from heapq import heappop, heappush

CallKind = tuple[str, str]


class Occurrences:
    """Counts equal calls (tool, arguments' digest) of a run, from 0, in the order in which they are made.

    A number is given back if the caller was not told of the call's end, so that the next try is the same call and not
    a new one (`placet.tries`).
    """

    def __init__(self) -> None:
        # The garbage collector may end a forgotten coroutine at any allocation, also of a thread that holds the lock,
        # which then gives a number back.
        self._lock = threading.RLock()
        self._used: dict[CallKind, int] = defaultdict(int)
        self._free: dict[CallKind, list[int]] = defaultdict(list)

    def next(self, kind: CallKind) -> int:
        """The lowest number not in use."""
        with self._lock:
            if self._free[kind]:
                return heappop(self._free[kind])
            self._used[kind] += 1
            return self._used[kind] - 1

    def give_back(self, kind: CallKind, number: int) -> None:
        """Let the next equal call have this number."""
        with self._lock:
            heappush(self._free[kind], number)
