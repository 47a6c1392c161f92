"""The next moments at which something in an execution is due."""

from schemas.limits import DEADLINE_MAX_S
from schemas.refusals import Refusal
from services.domain.state import Call, Execution, Hold, Turn

# Clients choose the ids of calls and turns, and can compute those of holds. No such id has a slash, so these keys
# never collide.
CALL_PREFIX = "call/"
TURN_PREFIX = "turn/"
# The key in `Execution.due` of the end of a run that has nothing open.
IDLE = "idle/"


def due_id_of_call(call_id: str) -> str:
    """The key of a call in `Execution.due`; a hold's key is its own id."""
    return CALL_PREFIX + call_id


def idle_problem(idle_ms: int | None) -> tuple[Refusal, str] | None:
    """The reason why a run cannot start with a time after which it ends by itself, or None."""
    if idle_ms is None or 0 < idle_ms <= DEADLINE_MAX_S * 1000:
        return None
    return Refusal.INVALID, f"idle_seconds must be above 0 and at most {DEADLINE_MAX_S}"


def idle_due(state: Execution, at_ms: int) -> int | None:
    """The moment (ms) at which a run is completed by itself, if nothing happens after `at_ms`."""
    is_busy = state.open_count or state.open_turns or state.lifecycle == "paused"
    if state.idle_ms is None or state.closed or is_busy or set(state.due) - {IDLE}:
        return None
    return at_ms + state.idle_ms


def due_id_of_turn(turn_id: str) -> str:
    """The key of a turn in `Execution.due`."""
    return TURN_PREFIX + turn_id


def turn_due(turn: Turn) -> int | None:
    """The moment (ms) at which the turn's lease ends."""
    return turn.lease_until_ms if turn.status == "claimed" else None


def hold_due(hold: Hold) -> int | None:
    """The hold's next moment (ms): its reminder, its escalation or its deadline, whichever comes first."""
    if hold.status != "open":
        return None
    moments = (hold.remind_at_ms, hold.escalate_at_ms, hold.deadline_at_ms)
    return min((at for at in moments if at is not None), default=None)


def call_due(call: Call) -> int | None:
    """The call's next moment (ms): its grant expires, its attempt counts as lost, or its reservation times out."""
    if call.status == "released":
        return call.grant_expires_at_ms
    if call.status == "consumed":
        # A call that was consumed by a version without leases has none.
        return min(call.run_deadline_at_ms, call.lease_until_ms or call.run_deadline_at_ms)
    return call.reservation.deadline_at_ms if call.reservation is not None and is_reserving(call) else None


def is_reserving(call: Call) -> bool:
    """True if the call waits for a use of a standing rule."""
    asked = call.reservation
    return call.status == "proposed" and asked is not None and not asked.settled
