"""Everything due expires before anything else is decided. A deadline never releases anything."""

from schemas.canonical import parse_strict
from schemas.events import calls as c
from schemas.events import holds as h
from schemas.events.executions import ExecutionCompleted
from schemas.limits import PART_MAX_BYTES
from schemas.questions.answers import default_problem
from services.domain.context import Context
from services.domain.execution.beside_samples import rests_beside_sample
from services.domain.execution.deadlines import CALL_PREFIX, IDLE, TURN_PREFIX, is_reserving
from services.domain.execution.decisions import halted
from services.domain.execution.evolve import evolve
from services.domain.execution.holds import escalation
from services.domain.execution.requests import provided
from services.domain.execution.reservations import settled_events
from services.domain.execution.sizes import events_bytes
from services.domain.execution.turns import lapsed
from services.domain.execution.verdicts import denial, outcome_unknown_events
from services.domain.refusals import Events
from services.domain.state import Call, Execution, Hold

TIMER = "placet:timer"


def expire(state: Execution, ctx: Context) -> Events:
    """The events of everything due at `now`, the earliest first: all of it, or as much as one decision can record.

    Calls whose wait for a use ends are judged: none by trust beside a sampled one of the same decision.

    One expiry can end another (a halt closes the run) or cause one (an escalation that is overdue as well),
    so each is folded before the next is looked up.
    """
    events: Events = []
    size_bytes = 0
    while (subject_id := first_due(state, ctx.now_ms)) is not None:
        step = _expire_one(state, subject_id, ctx)
        size_bytes += events_bytes(state, ctx, step)
        is_too_large = bool(events) and size_bytes > PART_MAX_BYTES
        if is_too_large or rests_beside_sample(state, events, step, ctx):
            return events
        for event in step:
            state = evolve(state, event, ctx.now_ms)
        events += step
    return events


def first_due(state: Execution, now_ms: int) -> str | None:
    """The key in `Execution.due` of what is overdue the longest; None if nothing is due."""
    due = state.next_due
    return due[1] if due is not None and due[0] <= now_ms else None


def _expire_one(state: Execution, subject_id: str, ctx: Context) -> Events:
    if subject_id == IDLE:
        return [ExecutionCompleted(result="null", by=TIMER)]
    if subject_id.startswith(CALL_PREFIX):
        return _expire_call(state, state.calls[subject_id.removeprefix(CALL_PREFIX)], ctx)
    if subject_id.startswith(TURN_PREFIX):
        return lapsed(state.turns[subject_id.removeprefix(TURN_PREFIX)], TIMER)
    return _expire_hold(state, state.holds[subject_id], ctx)


def _expire_call(state: Execution, call: Call, ctx: Context) -> Events:
    if call.status == "released":
        revoked = c.GrantRevoked(call_id=call.call_id, revision=call.revision, reason="expired", by=TIMER)
        return [revoked]
    if is_reserving(call):
        return settled_events(state, call, False, "no answer came in time", ctx)
    return outcome_unknown_events(state, call, _silence(call, ctx.now_ms), ctx)


def _silence(call: Call, now_ms: int) -> str:
    """The reason why it is unknown whether a consumed call still runs."""
    if call.run_deadline_at_ms <= now_ms:
        return "no result came by the run deadline"
    return f"its process sent no heartbeat for {call.lease_ms / 1000:g} s and reported no result"


def _expire_hold(state: Execution, hold: Hold, ctx: Context) -> Events:
    past_deadline = hold.deadline_at_ms is not None and hold.deadline_at_ms <= ctx.now_ms
    if not past_deadline:
        is_overdue = hold.escalate_at_ms is not None and hold.escalate_at_ms <= ctx.now_ms
        # Those who are asked from the escalation on are told of it, and the others a reminder later.
        return [escalation(hold, TIMER, hold.deadline_at_ms)] if is_overdue else [_reminder(hold)]
    if hold.on_timeout == "escalate":
        waited_ms = (hold.deadline_at_ms or ctx.now_ms) - hold.opened_at_ms
        return [escalation(hold, TIMER, ctx.now_ms + waited_ms)]
    expired = h.HoldExpired(hold_id=hold.hold_id, on_timeout=hold.on_timeout)
    call = state.calls.get(hold.call_id)
    ended = _request_ended(hold) if call is None else _call_ended(hold, call)
    stop = halted(state, hold, call, "a hold expired") if hold.on_timeout == "halt" else []
    return [expired, *ended, *stop]


def _reminder(hold: Hold) -> h.HoldReminded:
    return h.HoldReminded(hold_id=hold.hold_id)


def _call_ended(hold: Hold, call: Call) -> Events:
    told = parse_strict(hold.default_value) if hold.on_timeout == "default" and hold.default_value else ""
    # An earlier version recorded the policy's text unchanged, so it can be any JSON.
    feedback = told if isinstance(told, str) else hold.default_value
    return [denial(call, "timeout", feedback or "nobody decided in time")]


def _request_ended(hold: Hold) -> Events:
    # An earlier version accepted any default: one that is not a possible answer counts as none.
    is_known = default_problem(hold.kind, hold.options, hold.input_schema, hold.default_value) is None
    if hold.on_timeout == "default" and hold.default_value is not None and is_known:
        return [provided(hold, hold.default_value, TIMER, timed_out=True)]
    return [provided(hold, "null", TIMER, timed_out=True)]
