"""A run as a whole: started once, paused, resumed, ended."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from schemas import commands as k
from schemas.events import executions as x
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.arguments import json_problem
from services.domain.authority.authority import acts_for_agent, may_resume, may_steer
from services.domain.context import Context
from services.domain.execution.digests import start_digest
from services.domain.execution.endings import closing_events
from services.domain.execution.folding import Fold, Folds
from services.domain.execution.handler import Handler, Handlers
from services.domain.execution.parked import judge_parked
from services.domain.execution.turns import ended_turns
from services.domain.refusals import Events, refuse
from services.domain.state import Execution


def _start(state: Execution, command: k.StartExecution, ctx: Context) -> Events:
    if not acts_for_agent(ctx.actor, state.agent):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such execution")
    if state.closed:
        detail = (
            f"the execution is {state.lifecycle}, and its id is never used again: start one under another id"
        )
        return refuse(ctx, command, Refusal.EXECUTION_CLOSED, detail)
    if start_digest(command) != state.start_digest:
        return refuse(ctx, command, Refusal.ID_REUSED, "the execution was started with another body")
    return refuse(ctx, command, Refusal.DUPLICATE, "already started")


def _pause(state: Execution, command: k.PauseExecution, ctx: Context) -> Events:
    # A person's pause replaces an agent's: from then on no agent can end it.
    taken_over = bool(state.paused_by_agent) and ctx.actor.agent is None
    if state.lifecycle == "paused" and not taken_over:
        return refuse(ctx, command, Refusal.DUPLICATE, "already paused")
    return [x.ExecutionPaused(reason=command.reason, by=ctx.actor.subject, agent=ctx.actor.agent)]


def _resume(state: Execution, command: k.ResumeExecution, ctx: Context) -> Events:
    if state.lifecycle != "paused":
        return refuse(ctx, command, Refusal.NOT_OPEN, "the execution is not paused")
    if not may_resume(ctx.actor, state):
        detail = (
            "a person paused this execution: a reviewer or operator must resume it, an agent's token cannot"
        )
        return refuse(ctx, command, Refusal.NOT_AUTHORISED, detail)
    resumed = x.ExecutionResumed(feedback=command.feedback, by=ctx.actor.subject)
    return [resumed, *judge_parked(_resumed(state, resumed, ctx.now_ms), ctx)]


def _cancel(state: Execution, command: k.CancelExecution, ctx: Context) -> Events:
    ended = x.ExecutionCancelled(reason=command.reason, by=ctx.actor.subject)
    return [*_closing(state, "execution cancelled"), ended]


def _complete(state: Execution, command: k.CompleteExecution, ctx: Context) -> Events:
    if (malformed := json_problem(command.result)) is not None:
        return refuse(ctx, command, Refusal.MALFORMED, f"result: {malformed}")
    ended = x.ExecutionCompleted(result=command.result, by=ctx.actor.subject)
    return [*_closing(state, "execution completed"), ended]


def _fail(state: Execution, command: k.FailExecution, ctx: Context) -> Events:
    ended = x.ExecutionFailed(error=command.error, by=ctx.actor.subject)
    return [*_closing(state, "execution failed"), ended]


def _closing(state: Execution, reason: str) -> Events:
    return [*closing_events(state, reason), *ended_turns(state, reason)]


def _steering(handler: Handler, allowed: Callable[[Any, Execution], bool]) -> Handler:
    def guarded(state: Execution, command: Message, ctx: Context) -> Events:
        if not allowed(ctx.actor, state):
            return refuse(ctx, command, Refusal.NOT_AUTHORISED, "this token cannot do that to this execution")
        if state.closed:
            return refuse(ctx, command, Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}")
        return handler(state, command, ctx)

    return guarded


def _own(actor: Any, state: Execution) -> bool:
    return acts_for_agent(actor, state.agent)


def _paused(state: Execution, event: x.ExecutionPaused, at_ms: int) -> Execution:
    return replace(state, lifecycle="paused", paused_by_agent=event.agent or "")


def _resumed(state: Execution, event: x.ExecutionResumed, at_ms: int) -> Execution:
    return replace(state, lifecycle="resumed", paused_by_agent="")


def _ended(value: Any) -> Fold:
    return lambda state, event, at_ms: replace(state, lifecycle=value)


HANDLERS: Handlers = {
    k.StartExecution: _start,
    k.PauseExecution: _steering(_pause, may_steer),
    k.ResumeExecution: _steering(_resume, may_steer),
    k.CancelExecution: _steering(_cancel, may_steer),
    k.CompleteExecution: _steering(_complete, _own),
    k.FailExecution: _steering(_fail, _own),
}
FOLDS: Folds = {
    x.ExecutionPaused: _paused,
    x.ExecutionResumed: _resumed,
    x.ExecutionCompleted: _ended("completed"),
    x.ExecutionFailed: _ended("failed"),
    x.ExecutionCancelled: _ended("cancelled"),
}
