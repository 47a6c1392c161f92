"""The execution: one run of an agent, with its calls, holds and requests. `decide` for all of it.

`decide(state, command, context)` returns the events to record. First everything that is due at `now` expires, so
that nothing is released late; then the command is judged against what is left.
"""

from schemas import command_rules as rules
from schemas import commands as k
from schemas.events import executions as x
from schemas.ids import CHOSEN_ID_RULE, is_chosen_id, split_execution_key
from schemas.limits import DECISION_MAX_BYTES
from schemas.message import Message
from schemas.probe_commands import PlantProbe
from schemas.refusals import PRECEDENCE, Refusal
from services.domain.arguments import object_problem
from services.domain.authority.authority import acts_for_agent
from services.domain.context import Context
from services.domain.execution import (
    calls,
    expiry,
    holds,
    impact,
    probes,
    requests,
    reservations,
    results,
    secrets,
    steering,
    turns,
)
from services.domain.execution.beside_samples import rests_beside_sample
from services.domain.execution.deadlines import idle_problem
from services.domain.execution.evolve import evolve
from services.domain.execution.handler import Handlers
from services.domain.execution.joining import FULL, is_full, joining
from services.domain.execution.parked import judge_parked
from services.domain.execution.sizes import events_bytes
from services.domain.execution.views import with_views
from services.domain.input_schema import NotNow
from services.domain.refusals import Events, refuse, refuse_decision
from services.domain.state import Execution


def decide(state: Execution | None, command: Message, ctx: Context) -> Events:
    """The events of a command; empty only for a nudge (ExpireDue) that came early.

    Args:
        state: the execution, or None if it was never started.
        command: the body of an execution's command.
        ctx: the actor, the time and the definitions.
    """
    events = _decide(state, command, ctx)
    unfit = rules.unfit(command) or _unfit_id(state, command, ctx)
    return events if unfit is None else _refuse_unfit(events, command, ctx, *unfit)


def _unfit_id(state: Execution | None, command: Message, ctx: Context) -> tuple[Refusal, str] | None:
    """The reason why no execution with this id can start. One of an earlier version can still be stopped."""
    opens = isinstance(command, k.StartExecution | PlantProbe)
    if state is not None or not opens or is_chosen_id(ctx.execution_id):
        return None
    return Refusal.INVALID, f"execution_id {CHOSEN_ID_RULE}"


def _refuse_unfit(events: Events, command: Message, ctx: Context, unfit: Refusal, detail: str) -> Events:
    """The refusal of a command with a field over its limit or in the wrong form, in place of its events.

    If an earlier reason applies, the refusal has that reason's code. It quotes nothing of the command, so it is never
    a DecisionRefused and never has another refusal's detail.
    """
    code: Refusal | None = getattr(events[-1], "code", None) if events else None
    comes_first = code is not None and PRECEDENCE[code] <= PRECEDENCE[Refusal.INVALID]
    if code is not None and comes_first and code is not unfit:
        # The code already says the first reason.
        return refuse(ctx, command, code, f"besides that, {detail}")
    return refuse(ctx, command, unfit, detail)


def _decide(state: Execution | None, command: Message, ctx: Context) -> Events:
    if state is None:
        return _decide_nothing(command, ctx)
    due = with_views(state, probes.with_probes(state, expiry.expire(state, ctx), ctx.now_ms), ctx)
    expired = turns.with_resumed(state, due)
    for event in expired:
        state = evolve(state, event, ctx.now_ms)
    if expiry.first_due(state, ctx.now_ms) is not None:
        # If it were judged now, something that should have ended before it came could let it through.
        return expired + _not_yet(command, ctx)
    try:
        own = _own(state, command, ctx)
    except NotNow as error:
        own = _refuse_any(
            command, ctx, Refusal.UNAVAILABLE, f"the arguments cannot be checked now ({error}): ask again"
        )
    if expired and events_bytes(state, ctx, expired + own) > DECISION_MAX_BYTES:
        return expired + _not_yet(command, ctx)
    if rests_beside_sample(state, expired, own, ctx):
        return expired + _not_yet(command, ctx, "a call like this one was sampled at this moment: ask again")
    return expired + own


def _own(state: Execution, command: Message, ctx: Context) -> Events:
    """The events of a command alone, judged against what is left after all deadlines."""
    joined = joining(state, command, ctx)
    if joined is not None:
        was_full = is_full(state, joined.user)
        state = evolve(state, joined, ctx.now_ms)
    decided = probes.with_probes(state, _HANDLERS[type(command)](state, command, ctx), ctx.now_ms)
    own = with_views(state, decided, ctx)
    own = turns.with_resumed(state, own)
    if joined is None or _is_refused(own):
        return own
    return _refuse_any(command, ctx, *FULL) if was_full else [joined, *own]


def _not_yet(command: Message, ctx: Context, why: str = "many deadlines passed: ask again") -> Events:
    if isinstance(command, k.ExpireDue):
        return []
    return _refuse_any(command, ctx, Refusal.UNAVAILABLE, why)


def decide_forgotten(command: Message, ctx: Context) -> Events:
    """The refusal of a command for an execution that was closed so long ago that only its id is kept."""
    if isinstance(command, k.ExpireDue):
        return []
    if isinstance(command, k.EraseSecrets):
        return secrets.erase_forgotten(command, ctx)
    return _refuse_any(command, ctx, Refusal.EXECUTION_CLOSED, "the execution is closed")


def decide_unreadable(command: Message, ctx: Context) -> Events:
    """The refusal of a command for an execution with an event that cannot be read: its state is not guessed."""
    if isinstance(command, k.ExpireDue):
        return []
    detail = (
        "a recorded fact of this execution cannot be read by this version: an operator must inspect the log"
    )
    return _refuse_any(command, ctx, Refusal.UNAVAILABLE, detail)


def decide_put_off(command: Message, ctx: Context, detail: str) -> Events:
    """The refusal of a command that is not judged now, but can be a little later."""
    events = _refuse_any(command, ctx, Refusal.QUOTA, detail)
    unfit = rules.unfit(command)
    return events if unfit is None else _refuse_unfit(events, command, ctx, *unfit)


def _decide_nothing(command: Message, ctx: Context) -> Events:
    if isinstance(command, k.ExpireDue):
        return []
    if isinstance(command, PlantProbe):
        return probes.plant(command, ctx, split_execution_key(ctx.key.encode()))
    if not isinstance(command, k.StartExecution):
        return _refuse_any(command, ctx, Refusal.NOT_FOUND, "no such execution: start it first")
    if not acts_for_agent(ctx.actor, command.agent):
        return refuse(
            ctx, command, Refusal.NOT_AUTHORISED, f"this token cannot act for the agent {command.agent}"
        )
    if (problem := object_problem("context", command.context)) is not None:
        return refuse(ctx, command, *problem)
    if (problem := idle_problem(command.idle_ms)) is not None:
        return refuse(ctx, command, *problem)
    return [x.ExecutionStarted(**command.__dict__, by=ctx.actor.subject)]


def _is_refused(events: Events) -> bool:
    return any(isinstance(event, x.CommandRefused) for event in events)


def _refuse_any(command: Message, ctx: Context, code: Refusal, detail: str) -> Events:
    if isinstance(command, k.DecideHold):
        return refuse_decision(ctx, command, code, detail)
    return refuse(ctx, command, code, detail)


def _nudge(state: Execution, command: k.ExpireDue, ctx: Context) -> Events:
    # Everything due has expired already; a nudge that came early records nothing.
    return judge_parked(state, ctx)


_HANDLERS: Handlers = {
    k.ExpireDue: _nudge,
    **steering.HANDLERS,
    **calls.HANDLERS,
    **results.HANDLERS,
    **impact.HANDLERS,
    **holds.HANDLERS,
    **probes.HANDLERS,
    **requests.HANDLERS,
    **reservations.HANDLERS,
    **secrets.HANDLERS,
    **turns.HANDLERS,
}
