"""Errors of an agent's function: which of them decides what becomes of its turn."""

from __future__ import annotations

from placet.errors import HITLPending, OutcomeUnknown, PlacetError, ResultNotReported, StillHeld
from placet.execution import ends
from placet.models import ToolCall

# What a person has to end before the function can go on.
_WAITING = (HITLPending, StillHeld, OutcomeUnknown, ResultNotReported)


class AgentExited(PlacetError):
    """An agent's function called `sys.exit`: its turn has failed, and the worker goes on."""


class AgentCancelled(PlacetError):
    """An agent's function ended as cancelled, though nothing cancelled it: its turn has failed."""


class WaitsElsewhere(PlacetError):
    """An agent's function waits for a question or call of another run, for which its turn cannot be given back."""

    def __init__(self, why: PlacetError, execution_id: str) -> None:
        super().__init__(
            f"{why}; it is of the run {execution_id} and not of the conversation, so that the turn cannot wait for "
            "it: use turn.hitl and turn.run in an agent"
        )


def deciding(error: Exception) -> Exception:
    """The error that says what becomes of a turn: of several at once (ExceptionGroup), one that leaves it open."""
    if ends(error):
        return error
    found = leaves(error)
    # Such a call may be consumed for this process at any moment: the turn must not be another worker's before that.
    for leaf in found:
        if isinstance(leaf, StillHeld) and has_no_verdict(leaf.call):
            return leaf
    for kind in _WAITING:
        for leaf in found:
            if isinstance(leaf, kind):
                return leaf
    return next((leaf for leaf in found if isinstance(leaf, PlacetError) and leaf.acts == "retry"), error)


def leaves(error: BaseException) -> list[Exception]:
    """The errors that an error groups (ExceptionGroup), however deep; else itself."""
    within = getattr(error, "exceptions", None)
    if isinstance(within, tuple):
        return [leaf for each in within for leaf in leaves(each)]
    return [error] if isinstance(error, Exception) else []


def has_no_verdict(call: ToolCall) -> bool:
    """True if a call is not judged yet, as far as is known."""
    return call.pending and not call.hold_id


def waits_for(error: Exception) -> str | None:
    """The run of the question or call that an error waits for; None if it waits for none."""
    if isinstance(error, HITLPending):
        return error.request.execution_id
    return (
        error.call.execution_id if isinstance(error, StillHeld | OutcomeUnknown | ResultNotReported) else None
    )


def shown(error: Exception) -> str:
    """An error in a line of the log: those of others are named by their type, too."""
    return str(error) if isinstance(error, PlacetError) else repr(error)
