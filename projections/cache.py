"""Rows that were touched lately, so that a fold seldom has to ask the database."""

from collections.abc import Callable
from typing import Generic, TypeVar

from projections.folds.rows import Row, place_of
from projections.store.port import Key, RowStore
from projections.store.tables import EXECUTIONS, HOLDS, STANDING_RULES, TOOL_CALLS, Table

CAPACITY = 20_000


Address = TypeVar("Address")


class Shelf(Generic[Address]):
    """Rows of one table: those of the batch under way over those of earlier ones.

    Two generations of written rows are kept: what was not touched while `capacity` others were is forgotten
    with the older one, and read from the database when an event needs it again.
    """

    def __init__(self, load: Callable[[Address], Row | None], capacity: int = CAPACITY) -> None:
        self._load = load
        self._capacity = capacity
        self.touched: dict[Address, Row] = {}
        self._young: dict[Address, Row] = {}
        self._old: dict[Address, Row] = {}

    def get(self, address: Address) -> Row | None:
        """The row as it stands before the next event."""
        row = self.touched.get(address) or self._young.get(address) or self._old.get(address)
        return self._load(address) if row is None else row

    def put(self, address: Address, row: Row) -> None:
        """The row after an event."""
        self.touched[address] = row

    def written(self) -> None:
        """The rows of the batch are in the database."""
        self._young |= self.touched
        self.touched = {}
        if len(self._young) > self._capacity:
            self._old, self._young = self._young, {}


class RowCache:
    """The rows before an event (`projections.folds.fold.Rows`), from memory or else from the store."""

    def __init__(self, store: RowStore, capacity: int = CAPACITY) -> None:
        self._store = store
        self.executions: Shelf[bytes] = Shelf(lambda key: self._one(EXECUTIONS, place_of(key)), capacity)
        self.calls: Shelf[tuple[bytes, str]] = Shelf(
            lambda address: self._one(TOOL_CALLS, (*place_of(address[0]), address[1])), capacity
        )
        self.holds: Shelf[tuple[bytes, str]] = Shelf(
            lambda address: self._one(HOLDS, (*place_of(address[0])[:2], address[1])), capacity
        )

        self.standing_rules: Shelf[tuple[str, str]] = Shelf(
            lambda address: self._one(STANDING_RULES, address), capacity
        )

    def execution(self, key: bytes) -> Row | None:
        """The execution with this Kafka key."""
        return self.executions.get(key)

    def call(self, key: bytes, call_id: str) -> Row | None:
        """A call of the execution with this key."""
        return self.calls.get((key, call_id))

    def hold(self, key: bytes, hold_id: str) -> Row | None:
        """A hold of the execution with this key."""
        return self.holds.get((key, hold_id))

    def written(self) -> None:
        """The rows of the batch are in the database."""
        self.executions.written()
        self.calls.written()
        self.holds.written()
        self.standing_rules.written()

    def _one(self, table: Table, key: Key) -> Row | None:
        return next(iter(self._store.load(table, [key])), None)
