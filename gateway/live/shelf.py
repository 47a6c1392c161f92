"""Rows by id: those that must stay, and others up to a number, of which the least recently changed leave first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from projections.folds.rows import Row

K = TypeVar("K", bound=Hashable)
MAX_PASSING = 20_000


@dataclass(slots=True)
class Shelf(Generic[K]):
    """Rows by id: pinned ones stay, the others up to a maximum number."""

    max_passing: int = MAX_PASSING
    pinned: dict[K, Row] = field(default_factory=dict)
    passing: OrderedDict[K, Row] = field(default_factory=OrderedDict)

    def get(self, key: K) -> Row | None:
        """Return the row, if it is cached."""
        row = self.pinned.get(key)
        return self.passing.get(key) if row is None else row

    def put(self, key: K, row: Row, *, pin: bool) -> Row | None:
        """Store the row as it is now.

        Returns:
            The row that was evicted for it, if any.
        """
        if pin:
            self.passing.pop(key, None)
            self.pinned[key] = row
            return None
        self.pinned.pop(key, None)
        self.passing[key] = row
        self.passing.move_to_end(key)
        return self.passing.popitem(last=False)[1] if len(self.passing) > self.max_passing else None
