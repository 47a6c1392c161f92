"""What a call did, as people say afterwards: reports that it did harm. Nothing about the call itself changes."""

from msgspec.structs import replace

from schemas import commands as k
from schemas.events import calls as c
from schemas.limits import IMPACT_REPORTS_MAX
from schemas.refusals import Refusal
from services.domain.authority.authority import may_steer
from services.domain.context import Context
from services.domain.execution.folding import Folds, with_call
from services.domain.execution.handler import Handlers
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution

# What to do instead about a call that has not run.
_INSTEAD = {
    "proposed": "it waits for its verdict; cancel the execution if the call must not run",
    "held": "it waits for a person; reject it if it must not run",
    "released": "it was not consumed yet; revoke it if it must not run",
}


def report(state: Execution, command: k.ReportImpact, ctx: Context) -> Events:
    """ReportImpact: a person says that a call did harm; also after the end of the run, and once for each person."""
    call = state.calls.get(command.call_id)
    if call is None:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call", command.call_id)
    if (problem := _problem(state, call, ctx)) is not None:
        return refuse(ctx, command, *problem, call.call_id)
    return [
        c.ImpactReported(
            call_id=call.call_id,
            revision=call.revision,
            agent=call.agent,
            tool=call.tool,
            trust_class=call.trust_class,
            reason=command.reason,
            by=ctx.actor.subject,
            values=call.values,
        )
    ]


def _problem(state: Execution, call: Call, ctx: Context) -> tuple[Refusal, str] | None:
    if ctx.actor.agent is not None or not may_steer(ctx.actor, state):
        return Refusal.NOT_AUTHORISED, "only a reviewer or operator reports the impact of a call"
    if not _may_have_run(call):
        detail = _INSTEAD.get(call.status, "only the impact of a call that ran can be reported")
        return Refusal.NOT_OPEN, f"the call is {call.status}: {detail}"
    if ctx.people.name_of(ctx.actor.subject) in ctx.people.names_of(call.impact_by):
        return Refusal.DUPLICATE, "this person has already reported the impact of the call"
    if len(call.impact_by) >= IMPACT_REPORTS_MAX:
        return Refusal.QUOTA, f"{IMPACT_REPORTS_MAX} people have reported it, which is the maximum"
    return None


def _may_have_run(call: Call) -> bool:
    # A call of unknown outcome that is released again keeps its earlier attempts.
    return bool(call.consumed_by or call.spent)


def _reported(state: Execution, event: c.ImpactReported, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    return with_call(state, replace(call, impact_by=(*call.impact_by, event.by)))


HANDLERS: Handlers = {
    k.ReportImpact: report,
}
FOLDS: Folds = {
    c.ImpactReported: _reported,
}
