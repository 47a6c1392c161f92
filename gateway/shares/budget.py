"""The limits on bytes in memory that wait for readers, or to be read: for one subject, and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.problems import Problem
from gateway.shares.work import Owner
from schemas.refusals import Refusal

UNFINISHED = "too much of what this subject sends is unfinished, or waits to be handled: send less at once"
UNREAD = "too many answers to this subject are unread: read them first"
RETRY_AFTER_S = 1


class Budget:
    """Counts the waiting bytes, by subject."""

    def __init__(self, each_bytes: int, total_bytes: int) -> None:
        """Begin with no waiting bytes.

        Args:
            each_bytes: the maximum of one subject.
            total_bytes: the maximum in total; beyond it, subjects with more than a fair part get no more.
        """
        self._each = each_bytes
        self._total = total_bytes
        self._waiting: Counter[Owner] = Counter()
        self.bytes = 0

    def has_room(self, owner: Owner, size: int) -> bool:
        """Return True if `size` more bytes may wait for a subject."""
        wanted = self._waiting[owner] + size
        if wanted > self._each:
            return False
        return self.bytes + size <= self._total or wanted <= self._total // (2 * len(self._waiting))

    def ever_has_room(self, size: int) -> bool:
        """Return True if `size` bytes may wait for a subject that has none waiting."""
        return size <= self._each

    def take(self, owner: Owner, size: int) -> None:
        """Count bytes that begin to wait."""
        self._waiting[owner] += size
        self.bytes += size

    def give_back(self, owner: Owner, size: int) -> None:
        """Stop counting bytes that were sent, or dropped."""
        self._waiting[owner] -= size
        self.bytes -= size
        if self._waiting[owner] <= 0:
            del self._waiting[owner]

    @contextmanager
    def holding(self, owner: Owner, refusal: str = UNREAD) -> Iterator[Holding]:
        """Count what one answer or message of a subject keeps in memory, for the duration of the context.

        Args:
            owner: the subject.
            refusal: what it is told if it has no room.
        """
        held = Holding(self, owner, refusal)
        try:
            yield held
        finally:
            self.give_back(owner, held.size)
            held.size = 0


class Holding:
    """What one answer or message keeps in memory: `size` bytes, of which the subject's budget has less."""

    def __init__(self, budget: Budget, owner: Owner, refusal: str) -> None:
        self._budget = budget
        self._refusal = refusal
        self._owner = owner
        self.size = 0

    def keep(self, size: int) -> None:
        """Keep so many bytes from now on, instead of those before.

        Raises:
            Problem: 429 quota, the subject has no room for as many.
        """
        more = size - self.size
        if more > 0 and not self._budget.has_room(self._owner, more):
            raise Problem(Refusal.QUOTA, self._refusal, retry_after=RETRY_AFTER_S)
        if more > 0:
            self._budget.take(self._owner, more)
        else:
            self._budget.give_back(self._owner, -more)
        self.size = size
