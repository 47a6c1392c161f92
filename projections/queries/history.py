"""An execution's events, and its state at any moment as the fold of them."""

import time
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from projections.folds.fold import changed_rows
from projections.folds.holds import told_fields
from projections.folds.resources import resource_of
from projections.folds.rows import json_value
from projections.queries.moment import Moment, size_of, some_of, where
from projections.tables.answers import AnswerRow
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.events import EVENTS, EventRow
from projections.tables.executions import EXECUTIONS, ExecutionRow
from projections.tables.holds import HOLDS, HoldRow
from schemas.codec import MODELS
from schemas.ids import execution_key
from schemas.record import Event, EventMeta

# A history has no limit. It is read in steps, between which the views and the process serve others.
STEP_BYTES = 4 * 1024 * 1024
STEP_S = 0.05
# Columns of a hold that say nothing about the state of its execution, and can be large.
_LONG_COLUMNS: Any = {
    **dict.fromkeys(("request", "arguments", "reason", "asks", "default_value", "feedback", "response")),
    **dict.fromkeys(("requirements", "proposed_arguments", "senders", "trust", "risk_parts")),
    **dict.fromkeys(("options", "fields", "votes", "badges"), "[]"),
    **dict.fromkeys(("input_schema", "opening"), "{}"),
    "question": "",
}


@dataclass(slots=True)
class ExecutionState:
    """An execution with its calls, holds and turns, as rows, after some of its events."""

    execution: ExecutionRow | None = None
    calls: dict[str, CallRow] = field(default_factory=dict)
    holds: dict[str, HoldRow] = field(default_factory=dict)
    turns: dict[str, TurnRow] = field(default_factory=dict)


class Until(NamedTuple):
    """The end of a part of a history: its last events are those at a time, a version or an offset."""

    at_ms: int | None = None
    version: int | None = None
    offset: int | None = None


WHOLE = Until()


class WantedRows(NamedTuple):
    """The calls, holds and turns of an execution whose rows are wanted, by their ids."""

    calls: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()


NO_ROWS = WantedRows()


@dataclass(slots=True)
class Fold:
    """The state of an execution after a part of its history, which is read step by step.

    However long the history is, only the execution's row is kept, the rows that are wanted, turns that have not
    ended, and a little of each open hold: the decider limits the number of these.

    Attributes:
        tenant: of the execution.
        project: of the execution.
        execution_id: its id.
        until: where the part ends.
        wanted: of which calls, holds and turns the state has rows; it has also those of open turns.
        state: after the events that have been read.
    """

    tenant: str
    project: str
    execution_id: str
    until: Until = WHOLE
    wanted: WantedRows = NO_ROWS
    state: ExecutionState = field(default_factory=ExecutionState)
    _through: int = -1
    _calls: set[str] | None = None
    _others: dict[str, HoldRow] = field(default_factory=dict)

    def step(self, moment: Moment) -> bool:
        """Fold the next events, of about `STEP_BYTES` or for `STEP_S`; return True if there are no more."""
        if self._calls is None:
            self._calls = {*self.wanted.calls, *self._held_calls(moment)}
        size, ends_at = 0, time.monotonic() + STEP_S
        owner = (self.tenant, self.project, self.execution_id)
        with closing(each_event(moment, *owner, after_offset=self._through, until=self.until)) as rows:
            for row in rows:
                self._take(event_of(row))
                self._through = row["log_offset"]
                size += size_of(row)
                if size >= STEP_BYTES or time.monotonic() >= ends_at:
                    return False
        return True

    def execution(self, key: bytes) -> ExecutionRow | None:
        """See `projections.folds.fold.Rows`."""
        return self.state.execution

    def call(self, key: bytes, call_id: str) -> CallRow | None:
        """See `projections.folds.fold.Rows`."""
        return self.state.calls.get(call_id)

    def hold(self, key: bytes, hold_id: str) -> HoldRow | None:
        """See `projections.folds.fold.Rows`."""
        return self.state.holds.get(hold_id) or self._others.get(hold_id)

    def turn(self, key: bytes, turn_id: str) -> TurnRow | None:
        """See `projections.folds.fold.Rows`."""
        return self.state.turns.get(turn_id)

    def _held_calls(self, moment: Moment) -> list[str]:
        """The calls of the wanted holds: a hold shows what its call was when it opened."""
        table = f"{moment.dialect.prefix}{HOLDS.name}"
        text = f'SELECT "call_id" FROM {table} WHERE "tenant" = ? AND "project" = ? AND "hold_id" = ?'  # noqa: S608 – names of tables.py
        text = text.replace("?", moment.dialect.placeholder)
        found = [moment.execute(text, (self.tenant, self.project, one)) for one in self.wanted.holds]
        return [row[0] for rows in found for row in rows if row[0]]

    def _take(self, event: Event) -> None:
        after, state = changed_rows(event, self), self.state
        if after.execution is not None:
            state.execution = after.execution
        if (call := after.call) is not None and call["call_id"] in (self._calls or ()):
            state.calls[call["call_id"]] = call
        if after.hold is not None:
            self._keep_hold(after.hold)
        if (turn := after.turn) is not None:
            state.turns[turn["turn_id"]] = turn
            if turn["ended_at_ms"] is not None and turn["turn_id"] not in self.wanted.turns:
                del state.turns[turn["turn_id"]]

    def _keep_hold(self, row: HoldRow) -> None:
        hold_id = row["hold_id"]
        if hold_id in self.wanted.holds:
            self.state.holds[hold_id] = row
        elif row["status"] == "open" or row["call_id"] in (self._calls or ()):
            self._others[hold_id] = row | _LONG_COLUMNS
        else:
            self._others.pop(hold_id, None)


def events(
    moment: Moment, tenant: str, project: str, execution_id: str, *, after_offset: int, limit: int
) -> tuple[list[EventRow], bool]:
    """Rows of an execution's events, in order, and True if their size ended them. `event_json` converts them."""
    tail = (
        'WHERE "tenant" = ? AND "project" = ? AND "execution_id" = ? AND "log_offset" > ? '
        'ORDER BY "log_offset" LIMIT ?'
    )
    return some_of(moment.each(EVENTS, tail, (tenant, project, execution_id, after_offset, limit)))


def event_at(
    moment: Moment, tenant: str, project: str, *, partition: int, offset: int, agent: str | None = None
) -> EventRow | None:
    """The row of the event at a place of the log, if it is the project's.

    Args:
        moment: the views.
        tenant: the tenant.
        project: its project.
        partition: of the log.
        offset: in the partition.
        agent: only an event of an execution of this agent; None: of any.
    """
    place = {"log_partition": partition, "log_offset": offset}
    row = moment.one(EVENTS, tenant=tenant, project=project, **place)
    if row is None or agent is None:
        return row
    of_agent = {"execution_id": row["execution_id"], "agent": agent}
    is_its = moment.one(EXECUTIONS, tenant=tenant, project=project, **of_agent) is not None
    return row if is_its else None


def each_event(
    moment: Moment,
    tenant: str,
    project: str,
    execution_id: str,
    *,
    after_offset: int = -1,
    until: Until = WHOLE,
) -> Generator[EventRow, None, None]:
    """As `events`, but each as it is read, for `event_of`: the caller ends it where it has enough."""
    condition, values = where(
        [
            ('"tenant" = ?', tenant),
            ('"project" = ?', project),
            ('"execution_id" = ?', execution_id),
            ('"log_offset" > ?', after_offset),
            ('"log_offset" <= ?', until.offset),
            ('"version" <= ?', until.version),
            ('"at_ms" <= ?', until.at_ms),
        ]
    )
    return moment.each(EVENTS, f'{condition} ORDER BY "log_offset"', values)


def events_of_answer(moment: Moment, answer: AnswerRow) -> list[Event]:
    """The events of an execution's command, from its row in `answers`."""
    owner, until = answer["log_key"].split("/"), Until(offset=answer["last_offset"])
    with closing(each_event(moment, *owner, after_offset=answer["first_offset"] - 1, until=until)) as rows:
        return [event_of(row) for row in rows if row["command_id"] == answer["command_id"]]


def fold_all(history: Iterable[Event]) -> ExecutionState:
    """The state that results from an execution's events, with all of its calls, holds and turns."""
    state = ExecutionState()
    for event in history:
        after = changed_rows(event, _Rows(state))
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
    ("data", lambda row: told_fields(json_value(row["body"]))),
)
