"""The parts of folds: a fold applies one event to an execution. It never refuses and never checks the reason.

Each module that decides ends with the folds of its events, `FOLDS`; `evolve` uses all of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from schemas.message import Message
from services.domain.execution.deadlines import (
    IDLE,
    call_due,
    due_id_of_call,
    due_id_of_turn,
    hold_due,
    idle_due,
    is_reserving,
    turn_due,
)
from services.domain.state import TERMINAL_CALLS, Call, Execution, Hold, Turn

_TEXTS_OF_CALLS: dict[str, Any] = dict.fromkeys(
    ("arguments", "proposed_arguments", "context", "claims", "reason", "message"), ""
)
Fold = Callable[[Execution, Any, int], Execution]
Folds = Mapping[type[Message], Fold]


def with_call(state: Execution, call: Call) -> Execution:
    """The state with a call replaced, and with the counts and lists of open, parked and due updated."""
    if call.status in TERMINAL_CALLS and (call.arguments or call.spent):
        call = replace(call, **_TEXTS_OF_CALLS, spent=())
    earlier = state.calls.get(call.call_id)
    opened = _is_open_call(call) - _is_open_call(earlier)
    state = replace(state, calls=state.calls.set(call.call_id, call), open_count=state.open_count + opened)
    if state.parked and (call.judged or call.status != "proposed" or is_reserving(call)):
        state = replace(state, parked=tuple(name for name in state.parked if name != call.call_id))
    if is_reserving(call) != (call.call_id in state.reserving):
        others = tuple(name for name in state.reserving if name != call.call_id)
        state = replace(state, reserving=(*others, call.call_id) if is_reserving(call) else others)
    return _with_due(state, due_id_of_call(call.call_id), call_due(call))


def with_hold(state: Execution, hold: Hold) -> Execution:
    """The state with a hold replaced, and with what is open and due updated."""
    opened = _is_open_request(hold) - _is_open_request(state.holds.get(hold.hold_id))
    state = replace(state, holds=state.holds.set(hold.hold_id, hold), open_count=state.open_count + opened)
    return _with_due(state, hold.hold_id, hold_due(hold))


def with_turn(state: Execution, turn: Turn) -> Execution:
    """The state with a turn replaced, and with what is due updated."""
    state = replace(state, turns=state.turns.set(turn.turn_id, turn))
    return _with_due(state, due_id_of_turn(turn.turn_id), turn_due(turn))


def with_sender(state: Execution, subject: str) -> Execution:
    """The state with one more of those who have a say in what the agent does, each of whom is kept once."""
    return state if subject in state.senders else replace(state, senders=(*state.senders, subject))


def message_of(state: Execution) -> str:
    """The message that the agent is answering: of the turn that a worker has taken on and that has not ended.

    A turn that waits for a person, or for another worker, counts as well. Empty if there is no such turn.
    """
    turn = state.turns[state.open_turns[0]] if state.open_turns else None
    return turn.text if turn is not None and turn.attempt_id else ""


def with_idle_end(state: Execution, at_ms: int) -> Execution:
    """The state with the moment at which it ends by itself, after something happened at `at_ms`."""
    return state if state.idle_ms is None else _with_due(state, IDLE, idle_due(state, at_ms))


def ended_as(status: Any) -> Fold:
    """The fold of an event that gives a call its final status."""

    def step(state: Execution, event: Any, at_ms: int) -> Execution:
        return with_call(going_on(state), replace(state.calls[event.call_id], status=status))

    return step


def hold_with(**changes: Any) -> Fold:
    """The fold of an event that sets these fields of a hold, whatever the event's content."""
    return lambda state, event, at_ms: with_hold(state, replace(state.holds[event.hold_id], **changes))


def spent_attempts(call: Call, attempt_id: str = "") -> tuple[str, ...]:
    """The attempts that can no longer have the call, once `attempt_id` has it or it is released anew."""
    if call.attempt_id in ("", attempt_id, *call.spent):
        return call.spent
    return (*call.spent, call.attempt_id)


def going_on(state: Execution) -> Execution:
    """The run after its next event: a resumed run is running again."""
    return replace(state, lifecycle="running") if state.lifecycle == "resumed" else state


def _is_open_call(call: Call | None) -> bool:
    return call is not None and call.status not in TERMINAL_CALLS


def _is_open_request(hold: Hold | None) -> bool:
    return hold is not None and not hold.call_id and hold.status == "open"


def _with_due(state: Execution, subject_id: str, at_ms: int | None) -> Execution:
    if state.due.get(subject_id) == at_ms:
        return state
    earliest = state.next_due
    due = state.due.delete(subject_id) if at_ms is None else state.due.set(subject_id, at_ms)
    if earliest is not None and earliest[1] == subject_id:
        # The earliest moment was changed or removed: only then all others are searched.
        earliest = min(((at, subject) for subject, at in due.items()), default=None)
    elif at_ms is not None:
        earliest = min(earliest or (at_ms, subject_id), (at_ms, subject_id))
    return replace(state, due=due, next_due=earliest)
