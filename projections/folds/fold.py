"""Folds one event into all rows that it changes."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from projections.folds.audit import entry_of
from projections.folds.calls import call_resource
from projections.folds.effects import Before, New, new
from projections.folds.events import EFFECTS
from projections.folds.executions import execution_resource
from projections.folds.holds import hold_resource
from projections.folds.turns import turn_of, turn_resource
from projections.tables.audit import AUDIT_ENTRIES
from projections.tables.calls import CallRow
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.events.calls import ToolCallProposed
from schemas.events.conversations import MessageSent
from schemas.events.executions import ExecutionStarted
from schemas.events.holds import HoldOpened, HumanInputRequested
from schemas.message import Message
from schemas.record import Event


class Rows(Protocol):
    """The rows before an event."""

    def execution(self, key: bytes) -> ExecutionRow | None:
        """The execution with this Kafka key."""
        ...

    def call(self, key: bytes, call_id: str) -> CallRow | None:
        """A call of the execution with this key."""
        ...

    def hold(self, key: bytes, hold_id: str) -> HoldRow | None:
        """A hold of the execution with this key."""
        ...

    def turn(self, key: bytes, turn_id: str) -> TurnRow | None:
        """A turn of the execution with this key."""
        ...


class Folded(NamedTuple):
    """The rows that an event changed, as they are after it, None for the others; and the rows that it adds."""

    execution: ExecutionRow | None
    call: CallRow | None
    hold: HoldRow | None
    turn: TurnRow | None
    rows: list[New]


class Changed(NamedTuple):
    """The rows that an event changed, as they are after it, None for the others; and the rows before it."""

    execution: ExecutionRow | None
    call: CallRow | None
    hold: HoldRow | None
    turn: TurnRow | None
    before: Before


def changed_rows(event: Event, rows: Rows) -> Changed:
    """As `fold_event`, without the rows that the event adds to other tables."""
    key = event.key
    call_id, hold_id = subjects_of(event.body)
    execution = None if isinstance(event.body, ExecutionStarted) else rows.execution(key)
    hold = rows.hold(key, hold_id) if hold_id and not first_of_hold(event.body) else None
    if not call_id and hold is not None:
        call_id = hold["call_id"] or ""
    call = rows.call(key, call_id) if call_id and not first_of_call(event.body) else None
    turn_id = turn_of(event.body)
    turn = rows.turn(key, turn_id) if turn_id and not isinstance(event.body, MessageSent) else None
    turn_after = turn_resource(turn, event, execution=execution) if turn_id else None
    answered_id = answered_turn(event.body, execution)
    answered = rows.turn(key, answered_id) if answered_id else None
    execution_after = execution_resource(execution, event, hold=hold)
    call_after = call_resource(call, event, execution=execution, turn=answered) if call_id else None
    hold_after = (
        hold_resource(hold, event, call=call, execution=execution, turn=answered) if hold_id else None
    )
    return Changed(
        None if execution_after is execution else execution_after,
        None if call_after is call else call_after,
        None if hold_after is hold else hold_after,
        None if turn_after is turn else turn_after,
        Before(execution, call, hold),
    )


def fold_event(event: Event, rows: Rows) -> Folded:
    """The rows that an event of an execution changes.

    Args:
        event: one that counts by the term rule; not a record about the log or a definition.
        rows: the rows before it.
    """
    after = changed_rows(event, rows)
    return Folded(after.execution, after.call, after.hold, after.turn, _added(event, after.before))


def _added(event: Event, before: Before) -> list[New]:
    make = EFFECTS[type(event.body)].rows
    added = [] if make is None else list(make(event.body, event, before))
    entry = entry_of(event, before)
    return added if entry is None else [new(AUDIT_ENTRIES, entry), *added]


class Needed(NamedTuple):
    """Keys of the rows to read, each once; `of_holds` are holds by which their call must be looked up."""

    executions: dict[bytes, None]
    calls: dict[tuple[bytes, str], None]
    holds: dict[tuple[bytes, str], None]
    of_holds: dict[tuple[bytes, str], None]
    turns: dict[tuple[bytes, str], None]


def needed_rows(events: Iterable[Event]) -> Needed:
    """The rows that `fold_event` will read, except those that earlier events of the same sequence make."""
    needed = Needed({}, {}, {}, {}, {})
    made: set[object] = set()
    for event in events:
        key = event.key
        call_id, hold_id = subjects_of(event.body)
        if isinstance(event.body, ExecutionStarted):
            made.add(key)
        elif key not in made:
            needed.executions[key] = None
        _need_turn(needed.turns, made, event)
        if hold_id:
            if first_of_hold(event.body):
                made.add((key, "hold", hold_id))
            elif (key, "hold", hold_id) not in made:
                needed.holds[key, hold_id] = None
            if not call_id:
                needed.of_holds[key, hold_id] = None
        if call_id:
            if first_of_call(event.body):
                made.add((key, "call", call_id))
            elif (key, "call", call_id) not in made:
                needed.calls[key, call_id] = None
    return needed


def _need_turn(turns: dict[tuple[bytes, str], None], made: set[object], event: Event) -> None:
    turn_id = turn_of(event.body)
    if not turn_id:
        return
    if isinstance(event.body, MessageSent):
        made.add((event.key, "turn", turn_id))
    elif (event.key, "turn", turn_id) not in made:
        turns[event.key, turn_id] = None


def answered_turn(body: Message, execution: ExecutionRow | None) -> str:
    """The turn that the agent was answering, if an event proposes a call or opens a hold; else empty."""
    if execution is None or not isinstance(body, ToolCallProposed | HoldOpened):
        return ""
    return execution["turn_id"] or ""


def subjects_of(body: Message) -> tuple[str, str]:
    """The call id and the hold id that an event names; empty if it names none."""
    fields = body.__dict__
    return fields.get("call_id", ""), fields.get("hold_id", "")


# An event that makes a new thing is recognised by its type: no earlier row needs to be read.


def first_of_call(body: Message) -> bool:
    """Returns True if a call begins with an event."""
    return isinstance(body, ToolCallProposed) and body.revision == 1


def first_of_hold(body: Message) -> bool:
    """Returns True if a hold begins with an event."""
    return isinstance(body, HumanInputRequested) or (isinstance(body, HoldOpened) and not body.request_id)
