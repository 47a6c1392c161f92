"""The next moments at which something in an execution is due."""

from services.domain.state import Call, Hold

# Clients choose the ids of calls, and can compute those of holds. No such id has a slash, so the two never collide.
CALL_PREFIX = "call/"


def due_id_of_call(call_id: str) -> str:
    """The key of a call in `Execution.due`; a hold's key is its own id."""
    return CALL_PREFIX + call_id


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
