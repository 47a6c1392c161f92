"""The end of a consumed call: reported by its attempt, or unknown."""

from msgspec.structs import replace

from schemas import commands as k
from schemas.events import calls as c
from schemas.message import Message
from schemas.refusals import Refusal
from services.domain.arguments import json_problem
from services.domain.authority.authority import may_run
from services.domain.context import Context
from services.domain.execution.calls import not_theirs, settle_hold
from services.domain.execution.digests import result_digest
from services.domain.execution.folding import Folds, going_on, with_call
from services.domain.execution.handler import Handlers
from services.domain.execution.verdicts import outcome_unknown_events
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution


def report(state: Execution, command: k.ReportResult, ctx: Context) -> Events:
    """ReportResult: the outcome of the one attempt, from the subject that consumed the grant.

    A report is accepted even after the run was closed, and even if it is late.
    """
    call = state.calls.get(command.call_id)
    if call is None or not may_run(ctx.actor, call):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call", command.call_id)
    if (malformed := json_problem(command.output)) is not None:
        return refuse(ctx, command, Refusal.MALFORMED, f"output: {malformed}", call.call_id)
    if not call.attempt_id or call.status == "released":
        is_over = command.attempt_id in call.spent
        detail = "the call was released again after this attempt" if is_over else "the call was not consumed"
        return refuse(ctx, command, Refusal.NOT_RELEASED, detail, call.call_id)
    if (foreign := not_theirs(call, command.attempt_id, ctx)) is not None:
        return refuse(ctx, command, Refusal.ALREADY_CONSUMED, foreign, call.call_id)
    if call.status not in ("consumed", "outcome_unknown"):
        if (command.outcome, result_digest(_reported(command))) == (call.status, call.result_digest):
            return refuse(ctx, command, Refusal.DUPLICATE, f"the call has ended: {call.status}", call.call_id)
        detail = f"the call has ended: {call.status}, and not with this result"
        return refuse(ctx, command, Refusal.ID_REUSED, detail, call.call_id)
    if command.outcome == "unknown":
        return _outcome_unknown(state, call, command, ctx)
    return [*settle_hold(state, call, "the attempt reported its result later"), _result(command, ctx)]


def _reported(command: k.ReportResult) -> str:
    return command.output if command.outcome == "succeeded" else command.error


def _outcome_unknown(state: Execution, call: Call, command: k.ReportResult, ctx: Context) -> Events:
    if call.status == "outcome_unknown":
        return refuse(ctx, command, Refusal.DUPLICATE, "already recorded as unknown", call.call_id)
    return outcome_unknown_events(state, call, command.error or "reported as unknown", ctx)


def _result(command: k.ReportResult, ctx: Context) -> Message:
    if command.outcome == "succeeded":
        return c.ToolCallSucceeded(
            call_id=command.call_id,
            attempt_id=command.attempt_id,
            output=command.output,
            duration_ms=command.duration_ms,
            by=ctx.actor.subject,
        )
    return c.ToolCallFailed(
        call_id=command.call_id,
        attempt_id=command.attempt_id,
        error=command.error,
        duration_ms=command.duration_ms,
        by=ctx.actor.subject,
    )


def _failed(state: Execution, event: c.ToolCallFailed, at_ms: int) -> Execution:
    call = replace(state.calls[event.call_id], status="failed", result_digest=result_digest(event.error))
    return with_call(_read(going_on(state), call, event.error), call)


def _succeeded(state: Execution, event: c.ToolCallSucceeded, at_ms: int) -> Execution:
    number = state.succeeded_count + 1
    call = replace(
        state.calls[event.call_id],
        status="succeeded",
        succeeded_as=number,
        result_digest=result_digest(event.output),
    )
    return with_call(_read(replace(going_on(state), succeeded_count=number), call, event.output), call)


def _read(state: Execution, call: Call, text: str) -> Execution:
    """The run after it has read what a call returned."""
    if not call.is_untrusted or state.closed:
        return state
    return replace(state, words=state.words.with_output(call.call_id, text))


def _unknown(state: Execution, event: c.ToolCallOutcomeUnknown, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    state = _read(state, call, event.reason)
    if call.is_untrusted and not state.closed:
        # It may still report; until then nobody knows what the agent has read.
        state = replace(state, words=state.words.with_reading(call.call_id))
    return with_call(going_on(state), replace(call, status="outcome_unknown"))


HANDLERS: Handlers = {
    k.ReportResult: report,
}
FOLDS: Folds = {
    c.ToolCallSucceeded: _succeeded,
    c.ToolCallFailed: _failed,
    c.ToolCallOutcomeUnknown: _unknown,
}
