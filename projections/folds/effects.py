"""The effects of events: declared once for each type of event, by the modules of `projections.folds.events`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from projections.tables.agents import Counter
from projections.tables.calls import CallRow
from projections.tables.columns import R, Table, TableOf
from projections.tables.conversations import TurnRow
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.message import Message
from schemas.record import Event

B = TypeVar("B", bound=Message)


class Before(NamedTuple):
    """The rows before an event: its execution's, and those of the call and the hold that it is about.

    `turn` is the one that the agent was answering, where the event proposes a call or opens a hold.
    """

    execution: ExecutionRow | None
    call: CallRow | None
    hold: HoldRow | None
    turn: TurnRow | None = None


class Act(NamedTuple):
    """An act of a subject. The digest and the hold are by default those that the event is about."""

    subject: str
    action: str
    before: str | None = None
    after: str | None = None
    feedback: str = ""
    digest: str | None = None
    hold_id: str | None = None
    view_digest: str | None = None
    dwell_ms: int | None = None


class New(NamedTuple):
    """A row that an event adds to a table."""

    table: Table
    row: Any


def new(table: TableOf[R], row: R) -> New:
    """A new row of a table; mypy checks here that the row fits the table."""
    return New(table, row)


@dataclass(frozen=True, slots=True)
class Effect(Generic[B]):
    """The effects of events of one type; a field that is left out means no effect.

    `execution`, `call`, `hold` and `turn` change a row in place, which is a copy made for them; `starts`, `proposes`,
    `opens` and `opens_turn` make a row if there is none (`opens` also continues the row of a hold that was
    requested). `audit` returns who did what, or None if it is not an act of authority. `rows` makes rows of other
    tables. `counts` names the counters of the agent and the tool that are increased by one; `is_refusal` is counted
    without a tool.
    """

    of: type[B]
    starts: Callable[[B, Event], ExecutionRow] | None = None
    execution: Callable[[ExecutionRow, B, HoldRow | None], None] | None = None
    proposes: Callable[[B, Event, Before], CallRow] | None = None
    call: Callable[[CallRow, B, Event], None] | None = None
    opens: Callable[[HoldRow | None, B, Event, Before], HoldRow] | None = None
    hold: Callable[[HoldRow, B, Event], None] | None = None
    opens_turn: Callable[[B, Event, Before], TurnRow] | None = None
    turn: Callable[[TurnRow, B, Event], None] | None = None
    audit: Callable[[B, Before], Act | None] | None = None
    rows: Callable[[B, Event, Before], Iterable[New]] | None = None
    counts: Callable[[B, CallRow], tuple[Counter, ...]] | None = None
    is_refusal: bool = False
