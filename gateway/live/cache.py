"""Rows of executions, calls, holds and turns, kept current by the tail.

A cached row has exactly its state at the tail's position. A row that is not cached may be in the views:
`gateway.live.reader` fetches it and caches it. Open calls, holds and turns stay, with their executions; other rows
leave, least recently changed first.

The first row of a call, a hold or a turn has columns of its execution. `gateway.live.prefetch` fetches the execution
before such an event is folded. Where it could not, no row is made, and `incomplete` names it:
`gateway.live.completion` fetches it as soon as the views have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gateway.live.facts import Fact
from gateway.live.shelf import Shelf
from gateway.live.turns import TurnKey, Turns
from projections.folds.calls import call_resource
from projections.folds.executions import execution_resource
from projections.folds.fold import answered_turn, first_of_call, first_of_hold, subjects_of
from projections.folds.holds import hold_resource
from projections.folds.rows import Row, place_of
from projections.folds.states import TERMINAL
from projections.folds.turns import turn_of, turn_resource
from projections.tables.conversations import TurnRow
from schemas.ids import execution_key
from schemas.record import Event

CallKey = tuple[bytes, str]
Kind = Literal["call", "hold", "turn"]


class Incomplete(NamedTuple):
    """A call, a hold or a turn that began while its execution was not cached."""

    key: bytes
    kind: Kind
    id: str


@dataclass(slots=True)
class OpenWork:
    """The calls and holds of one execution that are open, by id."""

    calls: dict[str, Row] = field(default_factory=dict)
    holds: dict[str, Row] = field(default_factory=dict)


@dataclass(slots=True)
class Cache:
    """The cached rows. Changed only by the tail, and by rows fetched for the tail's position."""

    executions: Shelf[bytes] = field(default_factory=Shelf)
    calls: Shelf[CallKey] = field(default_factory=Shelf)
    holds: Shelf[str] = field(default_factory=Shelf)
    turns: Turns = field(default_factory=Turns)
    # With the event that each began with.
    incomplete: dict[Incomplete, Event] = field(default_factory=dict)
    _requests: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)
    _open: dict[tuple[str, str], dict[str, Row]] = field(default_factory=dict)
    _open_of: dict[bytes, OpenWork] = field(default_factory=dict)

    def folding(self, key: bytes) -> Folding:
        """Begin to fold the events of one command into the rows of its execution."""
        return Folding(self, key, self.executions.get(key))

    def put_execution(self, key: bytes, row: Row) -> None:
        """Store an execution's row."""
        has_open_work = key in self._open_of or self.turns.first_open(key) is not None
        self.executions.put(key, row, pin=has_open_work)

    def put_call(self, key: bytes, row: Row) -> None:
        """Store a call's row."""
        is_open = row["status"] not in TERMINAL
        self.calls.put((key, row["call_id"]), row, pin=is_open)
        self._note_open(key, "calls", row["call_id"], row if is_open else None)

    def put_hold(self, row: Row) -> None:
        """Store a hold's row."""
        if row["request_id"]:
            self._requests.setdefault(_request_key(row), set()).add(row["hold_id"])
        is_open = row["status"] == "open"
        project = (row["tenant"], row["project"])
        if is_open:
            self._open.setdefault(project, {})[row["hold_id"]] = row
        elif (waiting := self._open.get(project)) is not None:
            waiting.pop(row["hold_id"], None)
            if not waiting:
                del self._open[project]
        self._note_open(key_of(row), "holds", row["hold_id"], row if is_open else None)
        gone = self.holds.put(row["hold_id"], row, pin=is_open)
        if gone is not None and gone["request_id"]:
            others = self._requests[_request_key(gone)]
            others.discard(gone["hold_id"])
            if not others:
                del self._requests[_request_key(gone)]

    def put_turn(self, row: TurnRow) -> None:
        """Store a turn's row."""
        self.turns.put(row)
        self._keep_execution(key_of(row))

    def requests(self, tenant: str, project: str, request_id: str) -> list[Row]:
        """Return the cached holds that are requests with an id: one for each execution that chose it."""
        rows = map(self.holds.get, self._requests.get((tenant, project, request_id), ()))
        return [row for row in rows if row is not None]

    def open_holds(self, tenant: str, project: str) -> list[Row]:
        """Return the open holds of a project, longest open first."""
        return list(self._open.get((tenant, project), {}).values())

    def has_incomplete(self, tenant: str, project: str, hold_id: str, positions: Mapping[int, int]) -> bool:
        """Return True if a hold of a project is incomplete that views at these positions do not have either.

        Args:
            tenant: of the project.
            project: the project.
            hold_id: the hold; empty for any.
            positions: per partition of the executions, the first offset not read.
        """
        return any(
            one.kind == "hold"
            and hold_id in ("", one.id)
            and place_of(one.key)[:2] == (tenant, project)
            and positions.get(began.partition, 0) <= began.offset
            for one, began in self.incomplete.items()
        )

    def open_work(self, key: bytes) -> tuple[list[Row], list[Row]]:
        """Return the calls and the holds of an execution that are open, each longest open first."""
        found = self._open_of.get(key)
        return ([], []) if found is None else (list(found.calls.values()), list(found.holds.values()))

    def _note_open(self, key: bytes, kind: Literal["calls", "holds"], name: str, row: Row | None) -> None:
        """Note an open call or hold of an execution; None: it is not open."""
        found = self._open_of.get(key)
        if found is None:
            if row is None:
                return
            found = self._open_of[key] = OpenWork()
            self._keep_execution(key)
        rows = found.calls if kind == "calls" else found.holds
        if row is not None:
            rows[name] = row
        elif rows.pop(name, None) is not None and not found.calls and not found.holds:
            del self._open_of[key]
            self._keep_execution(key)

    def _keep_execution(self, key: bytes) -> None:
        """Pin the row of an execution while it has open work: what follows in it needs the row."""
        if (row := self.executions.get(key)) is not None:
            self.put_execution(key, row)


@dataclass(slots=True)
class Folding:
    """The rows of one execution while a command's events are folded into them; `keep` stores them in the cache."""

    cache: Cache
    key: bytes
    execution: Row | None
    calls: dict[str, Row | None] = field(default_factory=dict)
    holds: dict[str, Row | None] = field(default_factory=dict)
    turns: dict[str, TurnRow | None] = field(default_factory=dict)

    def apply(self, fact: Fact) -> None:
        """Fold a fact's event into the rows, and store the resulting rows in the fact."""
        event, execution = fact.event, self.execution
        call_id, hold_id = subjects_of(event.body)
        hold = self._hold(hold_id) if hold_id else None
        if not call_id and hold is not None:
            call_id = hold["call_id"] or ""
        call = self._call(call_id) if call_id else None
        answered_id = answered_turn(event.body, execution)
        answered = self._turn(answered_id) if answered_id else None
        has_context = execution is not None and (answered is not None or not answered_id)
        fact.execution = self.execution = after = execution_resource(execution, event, hold=hold)
        if after is not None:
            fact.state_changed = execution is None or execution["state"] != after["state"]
        if turn_id := turn_of(event.body):
            turn = self._turn(turn_id)
            turn_after = turn_resource(turn, event, execution=execution)
            is_whole = turn is not None or execution is not None
            fact.turn = self.turns[turn_id] = self._whole(event, "turn", turn_id, turn_after, is_whole)
        if call_id:
            fact.call_before = call
            call_after = call_resource(call, event, execution=execution, turn=answered)
            is_whole = call is not None or (has_context and first_of_call(event.body))
            fact.call = self.calls[call_id] = self._whole(event, "call", call_id, call_after, is_whole)
        if hold_id:
            hold_after = hold_resource(hold, event, call=call, execution=execution, turn=answered)
            begins = has_context and first_of_hold(event.body) and (call is not None or not call_id)
            is_whole = hold is not None or begins
            fact.hold = self.holds[hold_id] = self._whole(event, "hold", hold_id, hold_after, is_whole)
            if fact.hold is not None:
                was_open = hold is None or hold["status"] == "open"
                fact.hold_closed = was_open and fact.hold["status"] != "open"

    def _whole(self, event: Event, kind: Kind, name: str, row: Row | None, is_whole: bool) -> Row | None:
        """Return the row after an event; None if rows are missing of which it has columns."""
        if row is not None and not is_whole:
            self.cache.incomplete.setdefault(Incomplete(self.key, kind, name), event)
            return None
        return row

    def keep(self) -> None:
        """Store the rows in the cache as they are after all of the events."""
        cache = self.cache
        if self.execution is not None:
            cache.put_execution(self.key, self.execution)
        for call in self.calls.values():
            if call is not None:
                cache.put_call(self.key, call)
        for hold in self.holds.values():
            if hold is not None:
                cache.put_hold(hold)
        for turn in self.turns.values():
            if turn is not None:
                cache.put_turn(turn)

    def _call(self, call_id: str) -> Row | None:
        if call_id not in self.calls:
            self.calls[call_id] = self.cache.calls.get((self.key, call_id))
        return self.calls[call_id]

    def _hold(self, hold_id: str) -> Row | None:
        if hold_id not in self.holds:
            self.holds[hold_id] = self.cache.holds.get(hold_id)
        return self.holds[hold_id]

    def _turn(self, turn_id: str) -> TurnRow | None:
        if turn_id not in self.turns:
            self.turns[turn_id] = self.cache.turns.get(TurnKey(self.key, turn_id))
        return self.turns[turn_id]


def _request_key(row: Row) -> tuple[str, str, str]:
    return row["tenant"], row["project"], row["request_id"]


def key_of(row: Row) -> bytes:
    """Return the Kafka key of the execution that a row belongs to."""
    return execution_key(row["tenant"], row["project"], row["execution_id"])
