"""What each agent did with each tool: counters, the evidence behind trust."""

from collections.abc import Callable
from typing import Any

from projections.folds.rows import Row
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.message import Message
from schemas.record import Event

_OF_EFFECT = {"allow": "allowed", "hold": "held", "deny": "denied"}
_OF_DECISION = {"approve": "approved", "edit": "edited", "reject": "rejected"}

# What is counted of an agent without a tool: refused commands.
NO_TOOL = ""
REFUSED = "refused"


def counted(event: Event, *, execution: Row | None, call: Row | None) -> tuple[str, str, str] | None:
    """The agent, tool and counter that an event adds one to, or None.

    Args:
        event: any event of an execution.
        execution: the execution's row after it.
        call: the row, after it, of the call that it is about.
    """
    counter = _counter(event.body)
    if counter is None:
        return None
    if counter == REFUSED:
        return None if execution is None else (execution["agent"], NO_TOOL, counter)
    return None if call is None else (call["agent"], call["tool"], counter)


def _counter(body: Message) -> str | None:
    counter = _COUNTERS.get(type(body))
    return counter(body) if callable(counter) else counter


def _of_proposal(body: Any) -> str | None:
    return "proposed" if body.revision == 1 else None


_COUNTERS: dict[type[Message], str | Callable[[Any], str | None]] = {
    c.ToolCallProposed: _of_proposal,
    c.PolicyVerdictIssued: lambda body: _OF_EFFECT[body.effect],
    h.DecisionRecorded: lambda body: _OF_DECISION.get(body.decision),
    c.ToolCallSucceeded: "succeeded",
    c.ToolCallFailed: "failed",
    c.ToolCallOutcomeUnknown: "unknown",
    x.CommandRefused: REFUSED,
    h.DecisionRefused: REFUSED,
}
