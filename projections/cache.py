"""Rows that were used recently, so that a fold seldom reads the database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from projections.folds.fold import needed_rows
from projections.folds.rows import place_of
from projections.store.port import Key, RowStore
from projections.tables.calls import TOOL_CALLS, CallRow
from projections.tables.columns import R, TableOf
from projections.tables.conversations import TURNS, TurnRow
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow
from projections.tables.standing_rules import STANDING_RULES, StandingRuleRow
from schemas.ids import execution_key
from schemas.record import Event

CAPACITY = 20_000

Address = TypeVar("Address")
Load = Callable[[Sequence[Address], int], Mapping[Address, R]]


class Shelf(Generic[Address, R]):
    """Rows of one table: those of the batch under way over those of earlier batches.

    Two generations of written rows are kept. A row that is not used while `capacity` others are is dropped with the
    older generation, and read from the database when an event needs it again. Such a row was last written in a
    batch before the older generation began, so reading it does not wait for a later batch.
    """

    def __init__(self, load: Load[Address, R], capacity: int = CAPACITY) -> None:
        self._load = load
        self._capacity = capacity
        self.touched: dict[Address, R] = {}
        self._young: dict[Address, R] = {}
        self._old: dict[Address, R] = {}
        self._batches = self._young_since = self._old_since = 0

    def get(self, address: Address) -> R | None:
        """The row before the next event."""
        row = self.at_hand(address)
        return self._load([address], self._old_since).get(address) if row is None else row

    def at_hand(self, address: Address) -> R | None:
        """The row, if it is in memory."""
        return self.touched.get(address) or self._young.get(address) or self._old.get(address)

    def fetch(self, addresses: Iterable[Address]) -> None:
        """Read in one query those of these rows that are not in memory."""
        missing = [address for address in addresses if self.at_hand(address) is None]
        if missing:
            self._young.update(self._load(missing, self._old_since))

    def put(self, address: Address, row: R) -> None:
        """Store the row after an event."""
        self.touched[address] = row

    def written(self) -> None:
        """Note that the rows of the batch are in the database, or on their way to it."""
        self._batches += 1
        self._young |= self.touched
        self.touched = {}
        if len(self._young) > self._capacity:
            self._old, self._young = self._young, {}
            self._old_since, self._young_since = self._young_since, self._batches


class RowCache:
    """The rows before an event (`projections.folds.fold.Rows`), from memory or, if absent, from the store."""

    def __init__(self, store: RowStore, capacity: int = CAPACITY) -> None:
        self.executions: Shelf[bytes, ExecutionRow] = Shelf(_from(store, EXECUTIONS, place_of), capacity)
        self.calls: Shelf[tuple[bytes, str], CallRow] = Shelf(
            _from(store, TOOL_CALLS, lambda address: (*place_of(address[0]), address[1])), capacity
        )
        self.holds: Shelf[tuple[bytes, str], HoldRow] = Shelf(
            _from(store, HOLDS, lambda address: (*place_of(address[0])[:2], address[1]), _is_of), capacity
        )
        self.standing_rules: Shelf[tuple[str, str], StandingRuleRow] = Shelf(
            _from(store, STANDING_RULES, lambda address: address), capacity
        )
        self.turns: Shelf[tuple[bytes, str], TurnRow] = Shelf(
            _from(store, TURNS, lambda address: (*place_of(address[0]), address[1])), capacity
        )

    def execution(self, key: bytes) -> ExecutionRow | None:
        """The execution with this Kafka key."""
        return self.executions.get(key)

    def call(self, key: bytes, call_id: str) -> CallRow | None:
        """A call of the execution with this key."""
        return self.calls.get((key, call_id))

    def hold(self, key: bytes, hold_id: str) -> HoldRow | None:
        """A hold of the execution with this key."""
        return self.holds.get((key, hold_id))

    def turn(self, key: bytes, turn_id: str) -> TurnRow | None:
        """A turn of the execution with this key."""
        return self.turns.get((key, turn_id))

    def fetch(self, events: Iterable[Event]) -> None:
        """Read in one query per table the rows that folding these events needs: one by one costs many times as much.

        Args:
            events: of executions, in the order in which they will be folded.
        """
        needed = needed_rows(events)
        self.executions.fetch(needed.executions)
        self.holds.fetch(needed.holds)
        self.turns.fetch(needed.turns)
        calls = dict.fromkeys(needed.calls)
        for address in needed.of_holds:
            hold = self.holds.at_hand(address)
            if hold is not None and hold["call_id"]:
                calls[address[0], hold["call_id"]] = None
        self.calls.fetch(calls)

    def written(self) -> None:
        """Note that the rows of the batch are in the database, or on their way to it."""
        self.executions.written()
        self.calls.written()
        self.holds.written()
        self.turns.written()
        self.standing_rules.written()


def _from(
    store: RowStore,
    table: TableOf[R],
    key_of: Callable[[Address], Key],
    is_at: Callable[[R, Address], bool] = lambda row, address: True,
) -> Load[Address, R]:
    """Rows of a table; `is_at` leaves out a row whose key an address has, though it is not at that address."""

    def load(addresses: Sequence[Address], through: int) -> Mapping[Address, R]:
        keys = {address: key_of(address) for address in addresses}
        rows = {
            table.key_of(row): row for row in store.load(table, list(dict.fromkeys(keys.values())), through)
        }
        return {
            address: row
            for address, key in keys.items()
            if (row := rows.get(key)) is not None and is_at(row, address)
        }

    return load


def _is_of(hold: HoldRow, address: tuple[bytes, str]) -> bool:
    """True if a hold is one of the execution: the table has them by their ids, and a refused command can name any."""
    return execution_key(hold["tenant"], hold["project"], hold["execution_id"]) == address[0]
