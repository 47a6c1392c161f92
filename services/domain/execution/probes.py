"""Planted calls: known-bad calls by which an operator sees whether people notice (docs/probes.md).

A planted call is judged and held like any other, in a run of its own, which can be opened some time before it. It
never runs: whatever ends its hold denies it, no release of it is recorded, and no attempt can consume one.
"""

from typing import Any

from schemas.canonical import canonical, parse_strict
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.json_pointer import ABSENT, is_pointer, value_at
from schemas.message import Message
from schemas.probe import WRONG_MAX, Probe, ProbeAnswer, answers_to_text, is_caught, probe_to_text
from schemas.probe_commands import PlantProbe
from schemas.refusals import Refusal
from services.domain.arguments import arguments_misfit, json_problem, object_problem, parsed
from services.domain.context import Context
from services.domain.execution.calls import call_of, first_proposal
from services.domain.execution.deadlines import idle_problem
from services.domain.execution.decision_content import Problem
from services.domain.execution.digests import start_digest
from services.domain.execution.endings import closing_events
from services.domain.execution.evolve import evolve, start
from services.domain.execution.handler import Handlers
from services.domain.execution.turns import ended_turns
from services.domain.execution.verdicts import denial_of_probe, judged_events
from services.domain.execution.views import with_views
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution

ENDED, ENDED_BY = "execution completed", "placet:probe"
_ENDS_HOLD = (h.DecisionRecorded, h.HoldExpired, h.HoldCancelled)
_ENDS_RUN = (x.ExecutionCompleted, x.ExecutionFailed, x.ExecutionCancelled)


def plant(command: PlantProbe, ctx: Context, key: tuple[str, str, str]) -> Events:
    """PlantProbe: open a run for a call that people should not approve, and hold the call, or leave that for later.

    It is refused if nobody would be asked: then there is nothing to see.

    Args:
        command: the command.
        ctx: the decision's context.
        key: tenant, project and execution of the run, which does not exist yet.
    """
    if (problem := _problem(command, ctx)) is not None:
        return refuse(ctx, command, *problem, command.call_id)
    started = _start_of(command, ctx)
    state = start(key, started, ctx.now_ms)
    held = _held(state, command, ctx)
    if isinstance(held[-1], x.CommandRefused):
        return held
    return [started] if command.only_opens else [started, *with_views(state, held, ctx)]


def _plant_in(state: Execution, command: PlantProbe, ctx: Context) -> Events:
    """PlantProbe in a run that exists: only in one that was opened for this call, in which nothing was done since."""
    if not _is_operator(ctx):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such execution", command.call_id)
    problem = _problem(command, ctx) or _run_problem(state, command, ctx)
    if problem is not None:
        return refuse(ctx, command, *problem, command.call_id)
    return _held(state, command, ctx)


def _start_of(command: PlantProbe, ctx: Context) -> x.ExecutionStarted:
    return x.ExecutionStarted(
        agent=command.agent,
        user=command.user,
        workspace=command.workspace,
        request=command.request,
        context=command.run_context,
        by=command.requester or command.agent,
        idle_ms=command.idle_ms,
        probe=_mark(command, ctx),
    )


def _mark(command: PlantProbe, ctx: Context) -> str | None:
    wrong = tuple(dict.fromkeys(parse_strict(command.wrong)))
    return probe_to_text(Probe(ctx.actor.subject, command.note, wrong))


def _held(state: Execution, command: PlantProbe, ctx: Context) -> Events:
    """The proposal of the planted call, with its verdict and its hold; a refusal if it would not be held."""
    requester = command.requester or command.agent
    proposed = first_proposal(
        state, command, ctx, claims=command.claims, by=requester, probe=_mark(command, ctx)
    )
    judged = judged_events(state, call_of(state, proposed), ctx)
    if not isinstance(judged[-1], h.HoldOpened):
        return refuse(ctx, command, Refusal.INVALID, _not_asked(judged), command.call_id)
    return [proposed, *judged]


def _run_problem(state: Execution, command: PlantProbe, ctx: Context) -> Problem | None:
    """The reason why a call is not planted in a run that exists, or None.

    Its run ends with a planted call, and must end no work of an agent.
    """
    started = _start_of(command, ctx)
    is_its_own = (state.opened_for, state.start_digest, state.started_by, state.idle_ms) == (
        started.probe,
        start_digest(started),
        started.by,
        started.idle_ms,
    )
    if command.only_opens or not is_its_own or state.calls or state.holds or state.turns:
        detail = "the execution was started already: a call is planted in a run of its own"
        return Refusal.ID_REUSED, detail
    if state.closed:
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
    if state.lifecycle == "paused":
        # Its verdict would come after the pause, and nobody may be asked then.
        return Refusal.INVALID, "the execution is paused: resume it first"
    return None


def with_probes(state: Execution, events: Events, now_ms: int) -> Events:
    """The events of a decision, with the end of a planted call's hold; and without anything that would let it run.

    This is done in one place at the end of a decision, so that no path that ends a hold can omit it.

    Args:
        state: the state before the events.
        events: the events of one decision.
        now_ms: the time of the decision.
    """
    planted = state.calls.get(state.planted_call)
    if planted is None or planted.probe is None:
        return events
    seen: Events = []
    ended = False
    for event in events:
        if isinstance(event, c.ToolCallReleased) and event.call_id == planted.call_id:
            event = denial_of_probe(planted, event.decision_id)
        if isinstance(event, c.GrantConsumed) and event.call_id == planted.call_id:
            continue
        seen.append(event)
        if (end := _end_of(state, planted, planted.probe, event)) is not None:
            seen.append(end)
            ended = True
    if ended and not any(isinstance(event, _ENDS_RUN) for event in seen):
        # The agent whose run it appears to be may have opened something in it, and some of that ends here by itself.
        for event in seen:
            state = evolve(state, event, now_ms)
        seen += [*closing_events(state, ENDED, planted.call_id), *ended_turns(state, ENDED)]
        seen.append(x.ExecutionCompleted(result="null", by=ENDED_BY))
    return seen


def _problem(command: PlantProbe, ctx: Context) -> Problem | None:
    if not _is_operator(ctx):
        return Refusal.NOT_AUTHORISED, "only an operator plants a call"
    for field in ("arguments", "context", "claims", "run_context"):
        if (problem := object_problem(field, getattr(command, field))) is not None:
            return problem
    if (unfit := idle_problem(command.idle_ms)) is not None:
        return unfit
    if ctx.people.roles_of(command.requester or command.agent):
        return (
            Refusal.INVALID,
            "requester is an account with roles of a person: nobody proposes in their name",
        )
    if (wrong := _wrong_problem(command)) is not None:
        return wrong
    misfit = arguments_misfit(command.tool, command.arguments, ctx)
    return None if misfit is None else (Refusal.INVALID_ARGUMENTS, misfit)


def _wrong_problem(command: PlantProbe) -> Problem | None:
    if (malformed := json_problem(command.wrong)) is not None:
        return Refusal.MALFORMED, f"wrong: {malformed}"
    wrong, arguments = parse_strict(command.wrong), parsed(command.arguments)
    if not isinstance(wrong, list) or len(wrong) > WRONG_MAX:
        return Refusal.INVALID, f"wrong must be a list of at most {WRONG_MAX} JSON Pointers"
    for number, one in enumerate(wrong):
        if not isinstance(one, str) or not is_pointer(one):
            return Refusal.INVALID, f"wrong[{number}] is no JSON Pointer (RFC 6901), such as /to"
        if value_at(arguments, one) is ABSENT:
            return Refusal.INVALID, f"wrong[{number}] names nothing in the arguments"
    return None


def _is_operator(ctx: Context) -> bool:
    return ctx.actor.agent is None and ctx.actor.has("operator")


def _not_asked(judged: Events) -> str:
    verdict = next((one for one in judged if isinstance(one, c.PolicyVerdictIssued)), None)
    if verdict is None or verdict.reason == "remembered":
        why = "a remembered decision would release it"
    elif verdict.reason == "trusted":
        why = "trust would release it"
    else:
        why = f"the policy would {verdict.effect} it ({verdict.detail})"
    return f"nobody would be asked about this call: {why}"


def _end_of(state: Execution, call: Call, probe: Probe, event: Message) -> c.ProbeEnded | None:
    """The end of a planted call's hold, if an event ends it."""
    if not isinstance(event, _ENDS_HOLD) or (isinstance(event, h.DecisionRecorded) and not event.resolves):
        return None
    # Another hold can open and end in one decision.
    hold = state.holds.get(event.hold_id)
    if hold is None or hold.call_id != call.call_id:
        return None
    answers = tuple(ProbeAnswer(vote.by, vote.person, "approve", False) for vote in hold.votes)
    result: Any = "expired" if isinstance(event, h.HoldExpired) else "cancelled"
    if isinstance(event, h.DecisionRecorded):
        after = None if event.edited_arguments is None else parsed(event.edited_arguments)
        caught = is_caught(probe, event.decision, parsed(call.arguments), after)
        result = "caught" if caught else "missed"
        answers = (*answers, ProbeAnswer(event.by, event.person, event.decision, caught))
    return c.ProbeEnded(
        call_id=call.call_id,
        hold_id=hold.hold_id,
        revision=call.revision,
        agent=call.agent,
        tool=call.tool,
        result=result,
        planted_by=probe.by,
        note=probe.note,
        wrong=canonical(list(probe.wrong)),
        answers=answers_to_text(answers),
    )


HANDLERS: Handlers = {
    PlantProbe: _plant_in,
}
