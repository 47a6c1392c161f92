"""Calls proposed during a pause: judged when the run resumes, in parts of as many as one decision can record.

The verdict on such a call can be large even if its proposal is small: a hold repeats the tool's schema, a release the
arguments. So the resume judges the first part, and the timer's nudges the others, one after another. A part also ends
before a call for which trust would answer beside a sampled one of the same part (`beside_samples`).
"""

from schemas.limits import PART_MAX_BYTES
from services.domain.context import Context
from services.domain.execution.beside_samples import rests_beside_sample
from services.domain.execution.deadlines import due_id_of_call
from services.domain.execution.sizes import events_bytes
from services.domain.execution.verdicts import judged_events
from services.domain.refusals import Events
from services.domain.state import Execution

# A time that has always passed.
AT_ONCE_MS = 0


def next_moment(state: Execution) -> tuple[int, str] | None:
    """The next time (ms) at which something of the run is due, and its call or hold; None if nothing is."""
    if state.parked and not state.closed and state.lifecycle != "paused":
        return AT_ONCE_MS, due_id_of_call(min(state.parked))
    return state.next_due


def judge_parked(state: Execution, ctx: Context) -> Events:
    """The verdicts on parked calls in the order of their ids: of all of them, or of the next part."""
    events: Events = []
    if state.lifecycle == "paused":
        return events
    size_bytes = 0
    for call_id in sorted(state.parked):
        judged = judged_events(state, state.calls[call_id], ctx)
        size_bytes += events_bytes(state, ctx, judged)
        is_too_large = bool(events) and size_bytes > PART_MAX_BYTES
        if is_too_large or rests_beside_sample(state, events, judged, ctx):
            return events
        events += judged
    return events
