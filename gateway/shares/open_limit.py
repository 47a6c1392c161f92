"""The limit on what one caller has open at once, so that none can use all of a process's memory and files."""

from __future__ import annotations

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
            total: the maximum of all callers together; None for no other.
        """
        self._each = each
        self._refusal = refusal
        self._total = total
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
            Problem: 429 quota, the caller has the maximum, or all together have.
        """
        if self._open[caller] >= self._each or self._count == self._total:
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
