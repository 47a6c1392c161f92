"""The limits on bytes that wait for readers: for one subject, and in total."""

from __future__ import annotations

from collections import Counter

from gateway.shares.work import Owner


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
