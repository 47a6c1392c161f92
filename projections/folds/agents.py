"""Counters per agent and tool: the evidence behind trust."""

from typing import NamedTuple

from projections.folds.events import EFFECTS
from projections.tables.agents import Counter
from projections.tables.calls import CallRow
from projections.tables.executions import ExecutionRow
from schemas.record import Event

# The tool under which events of an agent without a tool are counted: refused commands.
NO_TOOL = ""
_REFUSED: tuple[Counter, ...] = ("refused",)


class Counted(NamedTuple):
    """The agent, the tool, and the counters to which an event adds one."""

    agent: str
    tool: str
    counters: tuple[Counter, ...]


def counted(event: Event, *, execution: ExecutionRow | None, call: CallRow | None) -> Counted | None:
    """Which counters an event increases, or None.

    Args:
        event: any event of an execution.
        execution: the execution's row after it.
        call: the row, after the event, of the call that it is about.
    """
    effect = EFFECTS[type(event.body)]
    if effect.is_refusal:
        if execution is None or execution["planted"]:
            # The run of a planted call is none of the agent's.
            return None
        return Counted(execution["agent"], NO_TOOL, _REFUSED)
    if call is None or effect.counts is None or call["probe"] is not None:
        return None
    counters = effect.counts(event.body, call)
    return Counted(call["agent"], call["tool"], counters) if counters else None
