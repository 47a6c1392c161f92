"""The view that a person will be shown, named in every hold that opens: its digest, and the risk that it shows.

This is done in one place at the end of a decision, so that no path that opens a hold can omit it.
"""

from schemas.display.judged import Judged
from schemas.display.versions import version_for
from schemas.display.view import Held, view_of
from schemas.events.calls import PolicyVerdictIssued, ToolCallProposed
from schemas.events.holds import HoldOpened, HumanInputRequested, asks_of
from services.domain.context import Context
from services.domain.execution.evolve import evolve
from services.domain.execution.opening import message_shown
from services.domain.refusals import Events
from services.domain.state import Execution


def with_views(state: Execution, events: Events, ctx: Context) -> Events:
    """The events of a decision, with `view_digest` and `risk_level` in those that open a hold.

    Args:
        state: the state before the events.
        events: the events of one decision.
        ctx: the decision's context.
    """
    if not any(isinstance(event, HoldOpened) for event in events):
        return events
    seen: Events = []
    verdicts: dict[str, PolicyVerdictIssued] = {}
    asked: dict[str, HumanInputRequested] = {}
    for event in events:
        match event:
            case ToolCallProposed():
                state = evolve(state, event, ctx.now_ms)
            case PolicyVerdictIssued():
                verdicts[event.call_id] = event
            case HumanInputRequested():
                asked[event.hold_id] = event
            case HoldOpened():
                verdict = None if event.cause == "outcome_unknown" else verdicts.get(event.call_id)
                event = _named(state, event, verdict, asked.get(event.hold_id), ctx)
        seen.append(event)
    return seen


def _named(
    state: Execution,
    opened: HoldOpened,
    verdict: PolicyVerdictIssued | None,
    asked: HumanInputRequested | None,
    ctx: Context,
) -> HoldOpened:
    call = state.calls.get(opened.call_id)
    message = message_shown(state, call)
    held = Held(
        tenant=state.tenant,
        project=state.project,
        execution_id=state.execution_id,
        asked=state.request,
        message=message,
        hold_id=opened.hold_id,
        call_id=opened.call_id,
        request_id=opened.request_id,
        revision=opened.revision,
        digest=opened.digest,
        kind=opened.kind,
        cause=opened.cause,
        question=opened.question,
        options=opened.options,
        fields=asked.fields if asked else "[]",
        decision_type=asked.decision_type if asked else "",
        asks=asks_of(asked) if asked else None,
        requester=opened.requester,
        agent=state.agent,
        user=state.user,
        tool=call.tool if call else "",
        tool_version=call.tool_version if call else "",
        reason=call.reason if call else "",
        arguments=call.arguments if call else None,
        proposed_arguments=call.proposed_arguments if call else "",
        judged=None if verdict is None else _judged(verdict),
        roles=opened.roles,
        reviewers=opened.reviewers,
        excluded=opened.excluded,
        quorum=opened.quorum,
        exclude_requester=opened.exclude_requester,
        opened_at_ms=ctx.now_ms,
        deadline_at_ms=opened.deadline_at_ms,
        on_timeout=opened.on_timeout,
        default_value=opened.default_value,
        escalate_roles=opened.escalate_roles,
        on_reject=opened.on_reject,
        remember=opened.remember,
        requirements=opened.requirements,
    )
    named = {
        "view_digest": view_of(held).digest,
        "view_version": version_for(message),
        "risk_level": "" if verdict is None else verdict.risk_level,
    }
    return opened.model_copy(update=named)


def _judged(verdict: PolicyVerdictIssued) -> Judged:
    return Judged(
        effect=verdict.effect,
        rules=verdict.rules,
        policy_version=verdict.policy_version,
        reason=verdict.reason,
        detail=verdict.detail,
        risk_score=verdict.risk_score,
        risk_level=verdict.risk_level,
        risk_parts=verdict.risk_parts,
        risk_required=verdict.risk_required,
        trust=verdict.trust,
        history=verdict.history,
        adaptive=verdict.adaptive,
    )
