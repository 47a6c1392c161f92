"""Undoing a run whose rule says `on_reject: rollback`: new calls undo those that succeeded, newest first.

The log names the calls to undo (`Denied.rollback`). Only the agent's own code knows how, so it passes a
compensation for each tool. If that is a gated function, undoing is proposed, judged and held like any other call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from placet.channel import Channel
from placet.errors import Denied
from placet.gate import read_call
from placet.models import ToolCall

Compensate = Callable[[ToolCall], Any]
# By execution and call: an agent can choose the same call id in each of its executions.
CallKey = tuple[str, str]


@dataclass(frozen=True)
class Undone:
    """The outcome of undoing one call.

    Attributes:
        call: the call that had succeeded, with its arguments and its output.
        answer: what its compensation returned.
        error: what the compensation raised; None if it succeeded.
        compensated: False if no compensation was given for its tool.
    """

    call: ToolCall
    answer: Any = None
    error: Exception | None = None
    compensated: bool = True

    @property
    def done(self) -> bool:
        """True if the call was undone."""
        return self.compensated and self.error is None


async def calls_to_undo(channel: Channel, denied: Denied) -> list[ToolCall]:
    """The calls that a rollback names, newest first."""
    execution_id = denied.call.execution_id
    return [await read_call(channel, execution_id, call_id) for call_id in denied.rollback]


async def undo(
    calls: Iterable[ToolCall], compensations: Mapping[str, Compensate], done: MutableMapping[CallKey, Undone]
) -> list[Undone]:
    """Undo calls one after the other; a failure does not prevent the others from being undone.

    Args:
        calls: to undo.
        compensations: by tool.
        done: by call, those already undone: skipped if the rollback is requested again, as after a cancellation.
    """
    undone = []
    for call in calls:
        if _key(call) in done:
            undone.append(done[_key(call)])
            continue
        try:
            answer = compensations[call.tool](call) if call.tool in compensations else None
            answer = await answer if isawaitable(answer) else answer
        except Exception as error:
            undone.append(Undone(call, error=error))
        else:
            undone.append(_noted(Undone(call, answer, compensated=call.tool in compensations), done))
    return undone


def undo_blocking(
    calls: Iterable[ToolCall], compensations: Mapping[str, Compensate], done: MutableMapping[CallKey, Undone]
) -> list[Undone]:
    """As `undo`, for functions that block."""
    undone = []
    for call in calls:
        if _key(call) in done:
            undone.append(done[_key(call)])
            continue
        try:
            answer = compensations[call.tool](call) if call.tool in compensations else None
        except Exception as error:
            undone.append(Undone(call, error=error))
        else:
            undone.append(_noted(Undone(call, answer, compensated=call.tool in compensations), done))
    return undone


def _noted(one: Undone, done: MutableMapping[CallKey, Undone]) -> Undone:
    if one.done:
        done[_key(one.call)] = one
    return one


def _key(call: ToolCall) -> CallKey:
    return call.execution_id, call.call_id
