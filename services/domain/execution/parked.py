"""Calls that were proposed in a pause: judged once the run goes on, as many at once as one decision may record.

A verdict on such a call can be large whatever its proposal was: a hold repeats the tool's schema, a release the
arguments. So a resume judges the first of them, and the timer's nudges the others, one part after another.
"""

from schemas.limits import PART_MAX_BYTES
from services.domain.context import Context
from services.domain.execution.deadlines import due_id_of_call
from services.domain.execution.sizes import events_bytes
from services.domain.execution.verdicts import judged_events
from services.domain.refusals import Events
from services.domain.state import Execution

# A moment that has always passed.
AT_ONCE_MS = 0


def next_moment(state: Execution) -> tuple[int, str] | None:
    """When the run is to be looked at next (ms), and for which call or hold; None where nothing waits for that."""
    if state.parked and not state.closed and state.lifecycle != "paused":
        return AT_ONCE_MS, due_id_of_call(min(state.parked))
    return state.next_due


def judge_parked(state: Execution, ctx: Context) -> Events:
    """The verdicts on parked calls in the order of their ids: all of them, or as many as one decision may record."""
    events: Events = []
    if state.lifecycle == "paused":
        return events
    size_bytes = 0
    for call_id in sorted(state.parked):
        judged = judged_events(state, state.calls[call_id], ctx)
        size_bytes += events_bytes(state, ctx, judged)
        if events and size_bytes > PART_MAX_BYTES:
            return events
        events += judged
    return events
