"""The limit on what one caller has open at once, so that none can use all of a process's memory and files.

Where all callers together have a limit, none may have more open than is still free (the dynamic threshold of
Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998, with a factor of 1).
Of a limit T, one caller alone gets T/2, each of n gets T/(n + 1), and as much stays free for the next that comes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from gateway.problems import Problem
from schemas.actor import Actor
from schemas.refusals import Refusal

RETRY_AFTER_S = 5


class OpenLimit:
    """Counts what is open, for each caller and in total."""

    def __init__(self, each: int, refusal: str, total: int | None = None) -> None:
        """Begin with nothing open.

        Args:
            each: the maximum of one caller.
            refusal: what a caller is told that has the maximum, as a sentence without its end.
            total: the maximum of all callers together, each leaves as much free as it has; None for no other.
        """
        self._each = each
        self._refusal = refusal
        self._total = math.inf if total is None else total
        self._open: Counter[Hashable] = Counter()
        self._count = 0

    @contextmanager
    def open(self, actor: Actor) -> Iterator[None]:
        """Count one more of a subject of a tenant; errors as `of`."""
        with self.of((actor.tenant, actor.subject)):
            yield

    @contextmanager
    def of(self, caller: Hashable) -> Iterator[None]:
        """Count one more of a caller, for the duration of the context.

        Raises:
            Problem: 429 quota, the caller has the maximum, or as much as is free.
        """
        if self._open[caller] >= min(self._each, self._total - self._count):
            if not self._open[caller]:
                del self._open[caller]
            raise Problem(Refusal.QUOTA, self._refusal, retry_after=RETRY_AFTER_S)
        self._open[caller] += 1
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    def __len__(self) -> int:
        return self._count
