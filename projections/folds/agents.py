"""What each agent did with each tool: counters, the evidence behind trust."""

from collections.abc import Callable
from typing import Any, NamedTuple

from projections.folds.rows import Row
from projections.folds.words import is_about_running
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
# Every word that counts, also one of several that a hold asks for; the decisions are counted beside.
VOTES = "votes"


class Counted(NamedTuple):
    """The agent, the tool, and the counters to which an event adds one."""

    agent: str
    tool: str
    counters: tuple[str, ...]


def counted(event: Event, *, execution: Row | None, call: Row | None) -> Counted | None:
    """What an event adds to, or None.

    Args:
        event: any event of an execution.
        execution: the execution's row after it.
        call: the row, after it, of the call that it is about.
    """
    body = event.body
    counter = _counter(body)
    if counter == REFUSED:
        return None if execution is None else Counted(execution["agent"], NO_TOOL, (counter,))
    if call is None:
        return None
    if isinstance(body, h.DecisionRecorded):
        decision = _OF_DECISION.get(body.decision) if is_about_running(body, call) else None
        return Counted(call["agent"], call["tool"], (VOTES, decision) if decision else (VOTES,))
    return None if counter is None else Counted(call["agent"], call["tool"], (counter,))


def _counter(body: Message) -> str | None:
    counter = _COUNTERS.get(type(body))
    return counter(body) if callable(counter) else counter


def _of_proposal(body: Any) -> str | None:
    return "proposed" if body.revision == 1 else None


_COUNTERS: dict[type[Message], str | Callable[[Any], str | None]] = {
    c.ToolCallProposed: _of_proposal,
    c.PolicyVerdictIssued: lambda body: _OF_EFFECT[body.effect],
    c.ToolCallSucceeded: "succeeded",
    c.ToolCallFailed: "failed",
    c.ToolCallOutcomeUnknown: "unknown",
    x.CommandRefused: REFUSED,
    h.DecisionRefused: REFUSED,
}
