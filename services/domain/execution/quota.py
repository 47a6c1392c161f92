"""Limits on what can be open in one execution, so that the events that end or resume it fit into one decision.

They also limit the delegations of one hold and the edits of one call, so that each further one costs about the same.
"""

from schemas.commands import ProposeToolCall
from schemas.limits import DELEGATIONS_MAX, EDITS_MAX, OPEN_MAX, PARKED_MAX_BYTES
from schemas.refusals import Refusal
from services.domain.execution.sizes import text_bytes
from services.domain.state import Call, Execution, Hold


def open_problem(state: Execution) -> tuple[Refusal, str] | None:
    """The reason why nothing more can be opened in the execution now, or None."""
    if state.open_count < OPEN_MAX:
        return None
    detail = (
        f"{state.open_count} calls and requests of this execution are open, and at most {OPEN_MAX} may be"
    )
    return Refusal.QUOTA, f"{detail}: ask again when some have ended, or in another execution"


def parking_problem(state: Execution, command: ProposeToolCall) -> tuple[Refusal, str] | None:
    """The reason why a call cannot be added to those that wait for the end of a pause, or None."""
    if state.lifecycle != "paused":
        return None
    parked = sum(_proposal_bytes(state.calls[call_id]) for call_id in state.parked)
    if parked + _proposal_bytes(command) <= PARKED_MAX_BYTES:
        return None
    detail = (
        f"the execution is paused, and its waiting calls may have at most {PARKED_MAX_BYTES} bytes together"
    )
    return Refusal.QUOTA, f"{detail}: propose it after the execution was resumed"


def delegating_problem(hold: Hold) -> tuple[Refusal, str] | None:
    """The reason why a hold cannot be delegated once more, or None."""
    if len(hold.delegations) < DELEGATIONS_MAX:
        return None
    detail = f"this hold was delegated {DELEGATIONS_MAX} times, which is the maximum"
    return Refusal.QUOTA, f"{detail}: one of the people who can decide it must do so"


def editing_problem(call: Call) -> tuple[Refusal, str] | None:
    """The reason why a call cannot be edited once more, or None. Revisions by a change of its tool count as well."""
    if call.revision <= EDITS_MAX:
        return None
    detail = f"this call was edited {EDITS_MAX} times, which is the maximum"
    return Refusal.QUOTA, f"{detail}: approve it as it is, or reject it and have it proposed again"


def _proposal_bytes(body: ProposeToolCall | Call) -> int:
    return sum(map(text_bytes, (body.arguments, body.context, body.claims, body.reason)))
