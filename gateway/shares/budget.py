"""How many bytes may wait for readers: of one subject, and in all."""

from __future__ import annotations

from collections import Counter

from gateway.shares.work import Owner


class Budget:
    """Counts the bytes that wait, by subject."""

    def __init__(self, each_bytes: int, total_bytes: int) -> None:
        """Begin with nothing waiting.

        Args:
            each_bytes: the most of one subject.
            total_bytes: the most in all; beyond it who has more than a fair part of it gets no more.
        """
        self._each = each_bytes
        self._total = total_bytes
        self._waiting: Counter[Owner] = Counter()
        self.bytes = 0

    def has_room(self, owner: Owner, size: int) -> bool:
        """Whether so many bytes more may wait for a subject."""
        wanted = self._waiting[owner] + size
        if wanted > self._each:
            return False
        return self.bytes + size <= self._total or wanted <= self._total // (2 * len(self._waiting))

    def ever_has_room(self, size: int) -> bool:
        """Whether so many bytes may wait for a subject for which nothing else does."""
        return size <= self._each

    def take(self, owner: Owner, size: int) -> None:
        """So many bytes more wait."""
        self._waiting[owner] += size
        self.bytes += size

    def give_back(self, owner: Owner, size: int) -> None:
        """So many bytes were sent, or dropped."""
        self._waiting[owner] -= size
        self.bytes -= size
        if self._waiting[owner] <= 0:
            del self._waiting[owner]
