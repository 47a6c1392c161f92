"""An execution's events, and its state at any moment as the fold of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from projections.folds.fold import fold_event
from projections.folds.holds import without_view_digest
from projections.folds.resources import resource_of
from projections.folds.rows import json_value
from projections.queries.moment import Moment
from projections.tables.answers import AnswerRow
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.events import EVENTS, EventRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.codec import MODELS
from schemas.ids import execution_key
from schemas.record import Event, EventMeta

ALL = 2**62


@dataclass(slots=True)
class ExecutionState:
    """An execution with its calls, holds and turns, as rows, after some of its events."""

    execution: ExecutionRow | None = None
    calls: dict[str, CallRow] = field(default_factory=dict)
    holds: dict[str, HoldRow] = field(default_factory=dict)
    turns: dict[str, TurnRow] = field(default_factory=dict)


def events(
    moment: Moment,
    tenant: str,
    project: str,
    execution_id: str,
    *,
    after_offset: int = -1,
    through_offset: int = ALL,
    limit: int = ALL,
) -> list[EventRow]:
    """Rows of an execution's events, in order. `event_json` and `event_of` convert them."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "log_offset" > ? '
        'AND "log_offset" <= ? ORDER BY "log_offset" LIMIT ?'
    )
    values = (tenant, project, execution_id, after_offset, through_offset, limit)
    return moment.select(EVENTS, tail, values)


def events_of_answer(moment: Moment, answer: AnswerRow) -> list[Event]:
    """The events of an execution's command, from its row in `answers`."""
    tenant, project, execution_id = answer["log_key"].split("/")
    rows = events(
        moment,
        tenant,
        project,
        execution_id,
        after_offset=answer["first_offset"] - 1,
        through_offset=answer["last_offset"],
    )
    return [event_of(row) for row in rows if row["command_id"] == answer["command_id"]]


def state_at(
    moment: Moment,
    tenant: str,
    project: str,
    execution_id: str,
    *,
    at_ms: int | None = None,
    version: int | None = None,
    offset: int | None = None,
) -> ExecutionState:
    """The state of an execution after its events up to and including a time, a version or an offset."""
    through = ALL if offset is None else offset
    rows = events(moment, tenant, project, execution_id, through_offset=through)
    until = _until(at_ms, version)
    return fold_all([event_of(row) for row in rows if until(row)])


def fold_all(history: list[Event]) -> ExecutionState:
    """The state that results from an execution's events."""
    state = ExecutionState()
    for event in history:
        after = fold_event(event, _Rows(state))
        if after.execution is not None:
            state.execution = after.execution
        if after.call is not None:
            state.calls[after.call["call_id"]] = after.call
        if after.hold is not None:
            state.holds[after.hold["hold_id"]] = after.hold
        if after.turn is not None:
            state.turns[after.turn["turn_id"]] = after.turn
    return state


def event_of(row: EventRow) -> Event:
    """The event in a row."""
    body = MODELS[f"placet.events.{row['type']}"].model_validate_json(row["body"])
    meta = EventMeta(
        event_id=row["event_id"],
        at_ms=row["at_ms"],
        term=row["term"],
        version=row["version"],
        command_id=row["command_id"],
        command_digest=row["command_digest"],
        tenant=row["tenant"],
        command_offset=row["command_offset"],
    )
    key = execution_key(row["tenant"], row["project"], row["execution_id"])
    return Event(body, meta, key, row["log_partition"], row["log_offset"])


def event_json(row: EventRow) -> dict[str, Any]:
    """An event as the APIs return it, from its row."""
    return _RESOURCE(row)


@dataclass(frozen=True, slots=True)
class _Rows:
    state: ExecutionState

    def execution(self, key: bytes) -> ExecutionRow | None:
        return self.state.execution

    def call(self, key: bytes, call_id: str) -> CallRow | None:
        return self.state.calls.get(call_id)

    def hold(self, key: bytes, hold_id: str) -> HoldRow | None:
        return self.state.holds.get(hold_id)

    def turn(self, key: bytes, turn_id: str) -> TurnRow | None:
        return self.state.turns.get(turn_id)


def _until(at_ms: int | None, version: int | None) -> Callable[[EventRow], bool]:
    def counts(row: EventRow) -> bool:
        return (at_ms is None or row["at_ms"] <= at_ms) and (version is None or row["version"] <= version)

    return counts


_RESOURCE = resource_of(
    EVENTS,
    "event_id",
    "type",
    "at_ms",
    "version",
    "term",
    ("partition", "log_partition"),
    ("offset", "log_offset"),
    "execution_id",
    "command_id",
    ("data", lambda row: without_view_digest(json_value(row["body"]))),
)
