"""The endings at the end of an execution: of its open holds, and of the calls that never ran."""

from schemas.events.calls import ToolCallCancelled
from schemas.events.holds import HoldCancelled
from services.domain.execution.folding import Folds, ended_as, hold_with
from services.domain.refusals import Events
from services.domain.state import Execution

NEVER_RAN = frozenset({"proposed", "held", "released"})


def closing_events(state: Execution, reason: str, spared_call_id: str = "") -> Events:
    """The ending events of everything open, in order of their ids.

    A consumed call can still report its result, and a call with an unknown outcome still waits for a person:
    both outlive the run. `spared_call_id` is a call whose ending is recorded elsewhere.
    """
    cancelled = {
        call.call_id
        for call in state.calls.values()
        if call.status in NEVER_RAN and call.call_id != spared_call_id
    }
    holds = [
        hold.hold_id
        for hold in state.holds.values()
        if hold.status == "open"
        and hold.cause != "outcome_unknown"
        and (not hold.call_id or hold.call_id in cancelled)
    ]
    events: Events = [HoldCancelled(hold_id=hold_id, reason=reason) for hold_id in sorted(holds)]
    events += [ToolCallCancelled(call_id=call_id, reason=reason) for call_id in sorted(cancelled)]
    return events


FOLDS: Folds = {
    ToolCallCancelled: ended_as("cancelled"),
    HoldCancelled: hold_with(status="cancelled"),
}
