"""One tool call: proposed, judged, released, consumed once, reported."""

from msgspec.structs import replace

from schemas import commands as k
from schemas.canonical import call_digest
from schemas.events import calls as c
from schemas.events.holds import HoldCancelled
from schemas.message import Message
from schemas.probe import probe_from_text
from schemas.refusals import Refusal, first_in_precedence
from schemas.sensitive import may_have_placeholder
from services.domain.arguments import arguments_misfit, object_problem
from services.domain.authority.authority import acts_for_agent, may_run, may_steer
from services.domain.context import LEASE_MS, RUN_TIMEOUT_MS, Context
from services.domain.execution.digests import proposal_digest
from services.domain.execution.folding import Folds, going_on, message_of, spent_attempts, with_call
from services.domain.execution.handler import Handlers
from services.domain.execution.quota import open_problem, parking_problem
from services.domain.execution.revalidation import allowed_meanwhile, stricter_now
from services.domain.execution.secrets import ERASED, handover
from services.domain.execution.verdicts import judged_events
from services.domain.memory.memory import contradictions
from services.domain.refusals import Events, refuse
from services.domain.state import Call, Execution

SOMEBODY_ELSES = "another sender's attempt consumed it"
OTHER_GRANT = (
    "the grant is not the call's newest release: it can no longer be used, or belongs to another call"
)
SPENT = "this attempt id was used for this call before: each run needs a new one"
# Each takes up space in the state until the call has ended.
ATTEMPTS_MAX = 1_000


def propose(state: Execution, command: k.ProposeToolCall, ctx: Context) -> Events:
    """ProposeToolCall: record the call and judge it; while the execution is paused only record it.

    If the call is released at once, the attempt that the proposal names consumes the grant in the same decision.
    """
    if (refused := _refuse_proposal(state, command, ctx)) is not None:
        return refused
    proposed = first_proposal(state, command, ctx, claims=command.claims, by=ctx.actor.subject)
    if state.lifecycle == "paused":
        return [proposed]
    call = call_of(state, proposed)
    judged = judged_events(state, call, ctx)
    return [proposed, *judged, *_consumed_at_once(call, judged[-1], command.attempt_id, ctx)]


def _consumed_at_once(call: Call, outcome: Message, attempt_id: str | None, ctx: Context) -> Events:
    """The consumption by the attempt of the proposal; sealed values are handed over only for a ConsumeGrant."""
    is_released = isinstance(outcome, c.ToolCallReleased)
    if attempt_id is None or not is_released or may_have_placeholder(call.arguments):
        return []
    return [_consumption(call, attempt_id, ctx)]


def first_proposal(
    state: Execution,
    command: k.ProposeToolCall | k.PlantProbe,
    ctx: Context,
    *,
    claims: str,
    by: str,
    probe: str | None = None,
) -> c.ToolCallProposed:
    """The event of a call's first revision, with the tool's version in force."""
    tool = ctx.tool(command.tool)
    version = tool.version if tool else ""
    return c.ToolCallProposed(
        call_id=command.call_id,
        revision=1,
        agent=state.agent,
        tool=command.tool,
        tool_version=version,
        arguments=command.arguments,
        digest=call_digest(state.tenant, state.agent, command.tool, version, command.arguments),
        context=command.context,
        claims=claims,
        reason=command.reason,
        by=by,
        probe=probe,
    )


def call_of(state: Execution, event: c.ToolCallProposed) -> Call:
    """The call of a first proposal, before it is recorded."""
    fields = {name: value for name, value in event.__dict__.items() if name not in ("by", "probe")}
    return Call(
        **fields,
        probe=probe_from_text(event.probe),
        requesters=(event.by,),
        proposal_digest=proposal_digest(event),
        senders=len(state.senders),
        message=message_of(state),
    )


def consume(state: Execution, command: k.ConsumeGrant, ctx: Context) -> Events:
    """ConsumeGrant: one attempt consumes the released digest, if the definitions still allow it."""
    call = state.calls.get(command.call_id)
    if call is None or not may_run(ctx.actor, call):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call", command.call_id)
    if (refused := _refuse_consumption(state, call, command, ctx)) is not None:
        return refused
    if again := stricter_now(state, call, ctx):
        detail = "the definitions changed after the release: the call is judged again"
        # A call that an attempt has consumed cannot be revoked for it; but no other attempt can run it any more.
        taken_back = again if call.status == "released" else []
        return [*taken_back, *refuse(ctx, command, Refusal.NOT_RELEASED, detail, call.call_id)]
    return [
        *settle_hold(state, call, "the tool is idempotent, and another attempt runs the call again"),
        *allowed_meanwhile(state, call, ctx),
        _consumption(call, command.attempt_id, ctx),
    ]


def _consumption(call: Call, attempt_id: str, ctx: Context) -> c.GrantConsumed:
    tool = ctx.tool(call.tool)
    return c.GrantConsumed(
        call_id=call.call_id,
        revision=call.revision,
        digest=call.digest,
        attempt_id=attempt_id,
        run_deadline_at_ms=ctx.now_ms + (tool.run_timeout_ms if tool else RUN_TIMEOUT_MS),
        by=ctx.actor.subject,
        lease_ms=tool.lease_ms if tool else LEASE_MS,
    )


def renew(state: Execution, command: k.RenewLease, ctx: Context) -> Events:
    """RenewLease: the attempt still runs. An early renewal is not recorded, so that the log does not fill up."""
    call = state.calls.get(command.call_id)
    if call is None or not may_run(ctx.actor, call):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call", command.call_id)
    if (foreign := not_theirs(call, command.attempt_id, ctx)) is not None:
        return refuse(ctx, command, Refusal.ALREADY_CONSUMED, foreign, call.call_id)
    if call.status != "consumed":
        return refuse(ctx, command, Refusal.NOT_RELEASED, f"the call is {call.status}", call.call_id)
    if (call.lease_until_ms - ctx.now_ms) * 2 > call.lease_ms or not call.lease_ms:
        return refuse(ctx, command, Refusal.DUPLICATE, "more than half of the lease is left", call.call_id)
    return [
        c.LeaseRenewed(
            call_id=call.call_id,
            attempt_id=call.attempt_id,
            lease_until_ms=ctx.now_ms + call.lease_ms,
            by=ctx.actor.subject,
        )
    ]


def revoke(state: Execution, command: k.RevokeGrant, ctx: Context) -> Events:
    """RevokeGrant: revoke a release that was not consumed."""
    call = state.calls.get(command.call_id)
    if call is None:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such call", command.call_id)
    if ctx.actor.agent is not None or not may_steer(ctx.actor, state):
        return refuse(
            ctx, command, Refusal.NOT_AUTHORISED, "only a reviewer or operator revokes", call.call_id
        )
    if call.status != "released":
        return refuse(ctx, command, Refusal.NOT_RELEASED, f"the call is {call.status}", call.call_id)
    reason = command.reason or "revoked"
    return [
        *contradictions(state, call, "", "", ctx),
        c.GrantRevoked(
            call_id=call.call_id,
            revision=call.revision,
            reason="revoked" if reason == "expired" else reason,
            by=ctx.actor.subject,
        ),
    ]


def _refuse_proposal(state: Execution, command: k.ProposeToolCall, ctx: Context) -> Events | None:
    if not acts_for_agent(ctx.actor, state.agent):
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such execution", command.call_id)
    for field in ("arguments", "claims", "context"):
        if (problem := object_problem(field, getattr(command, field))) is not None:
            return refuse(ctx, command, *problem, command.call_id)
    earlier = state.calls.get(command.call_id)
    if earlier is not None and earlier.proposal_digest == proposal_digest(command):
        return refuse(ctx, command, *_proposed_before(earlier, command, ctx), command.call_id)
    if (misfit := arguments_misfit(command.tool, command.arguments, ctx)) is not None:
        return refuse(ctx, command, Refusal.INVALID_ARGUMENTS, misfit, command.call_id)
    if state.closed:
        detail = f"the execution is {state.lifecycle}"
        return refuse(ctx, command, Refusal.EXECUTION_CLOSED, detail, command.call_id)
    if earlier is not None:
        return refuse(
            ctx, command, Refusal.ID_REUSED, "the call id was used with another body", command.call_id
        )
    full = open_problem(state) or parking_problem(state, command)
    return None if full is None else refuse(ctx, command, *full, command.call_id)


def _proposed_before(call: Call, command: k.ProposeToolCall, ctx: Context) -> tuple[Refusal, str]:
    """The refusal of a repeated proposal: to a proposal with an attempt, acceptance would be permission to run."""
    runs_it = command.attempt_id is not None and call.status == "consumed"
    foreign = not_theirs(call, command.attempt_id or "", ctx) if runs_it else None
    return (Refusal.DUPLICATE, "already proposed") if foreign is None else (Refusal.ALREADY_CONSUMED, foreign)


def _refuse_consumption(state: Execution, call: Call, command: k.ConsumeGrant, ctx: Context) -> Events | None:
    code, detail = _consumption_problem(state, call, command, ctx)
    if command.grant_id and command.grant_id != call.grant_id:
        given = [Refusal.NOT_RELEASED, *([] if code is None else [code])]
        if first_in_precedence(given) is Refusal.NOT_RELEASED:
            code, detail = Refusal.NOT_RELEASED, OTHER_GRANT
    return None if code is None else refuse(ctx, command, code, detail, call.call_id)


def _consumption_problem(
    state: Execution, call: Call, command: k.ConsumeGrant, ctx: Context
) -> tuple[Refusal | None, str]:
    if call.attempt_id == command.attempt_id and call.digest == command.digest:
        # An attempt's id is not secret, but the values that were delivered to it may be.
        if call.consumed_by != ctx.actor.subject:
            return Refusal.ALREADY_CONSUMED, SOMEBODY_ELSES
        return _repeat_of(call)
    if call.status == "expired":
        return Refusal.EXPIRED, "the release or its hold has expired"
    if handover(state, call.call_id).erased:
        return Refusal.EXPIRED, ERASED
    if state.closed:
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
    if call.digest != command.digest:
        return Refusal.DIGEST_MISMATCH, "this is not the digest of the call as it is in force"
    if call.attempt_id and not _may_run_again(call, ctx):
        return Refusal.ALREADY_CONSUMED, "another attempt consumed it"
    # A planted call never runs, whatever its status.
    if call.status not in ("released", "outcome_unknown") or call.probe is not None:
        return Refusal.NOT_RELEASED, f"the call is {call.status}"
    if command.attempt_id in call.spent:
        return Refusal.ALREADY_CONSUMED, SPENT
    if len(call.spent) >= ATTEMPTS_MAX:
        return Refusal.NOT_RELEASED, f"the call has had {ATTEMPTS_MAX} attempts: propose a new call"
    if state.lifecycle == "paused":
        return Refusal.NOT_RELEASED, "the execution is paused"
    return None, ""


def _repeat_of(call: Call) -> tuple[Refusal, str]:
    """The refusal for the attempt that consumed a call and asks again: it can run the call only while it holds it."""
    if call.status == "consumed":
        return Refusal.DUPLICATE, "this attempt has already consumed it"
    if call.status == "outcome_unknown":
        return (
            Refusal.NOT_RELEASED,
            "this attempt's outcome is unknown: a person decides what happens to the call",
        )
    return Refusal.ALREADY_CONSUMED, f"this attempt consumed it, and the call has ended: {call.status}"


def not_theirs(call: Call, attempt_id: str, ctx: Context) -> str | None:
    """The reason why the actor cannot act for the attempt that runs the call, or None.

    Everyone who can read the call sees the attempt's id, so the id proves nothing: the subject must match too.
    """
    if call.attempt_id and call.attempt_id != attempt_id:
        return "another attempt runs this call"
    if call.attempt_id and call.consumed_by != ctx.actor.subject:
        return SOMEBODY_ELSES
    return None


def _may_run_again(call: Call, ctx: Context) -> bool:
    """True if another attempt of the same subject can run the call again: the operator declares the tool idempotent.

    It can do so once the lease has ended, while a person is asked for the outcome: idempotent does not promise that
    two runs at the same time are safe. Another subject would take over the attempt, and with it its report.
    """
    tool = ctx.tool(call.tool)
    unchanged = tool is not None and tool.version == call.tool_version
    repeatable = call.status == "outcome_unknown" and unchanged and tool is not None and tool.idempotent
    return repeatable and call.consumed_by == ctx.actor.subject


def settle_hold(state: Execution, call: Call, reason: str) -> Events:
    """Cancel the hold that asks people for the outcome of an attempt."""
    hold = state.holds.get(call.hold_id)
    if call.status != "outcome_unknown" or hold is None or hold.status != "open":
        return []
    return [HoldCancelled(hold_id=hold.hold_id, reason=reason)]


def _proposed(state: Execution, event: c.ToolCallProposed, at_ms: int) -> Execution:
    earlier = state.calls.get(event.call_id)
    if state.lifecycle == "paused" and earlier is None:
        state = replace(state, parked=(*state.parked, event.call_id))
    requesters = (event.by,) if earlier is None else tuple(dict.fromkeys((*earlier.requesters, event.by)))
    if event.probe is not None:
        state = replace(state, planted_call=event.call_id)
    return with_call(
        going_on(state),
        Call(
            call_id=event.call_id,
            revision=event.revision,
            agent=event.agent,
            tool=event.tool,
            tool_version=event.tool_version,
            arguments=event.arguments,
            digest=event.digest,
            context=event.context,
            claims=event.claims,
            reason=event.reason,
            requesters=requesters,
            proposal_digest=proposal_digest(event) if earlier is None else earlier.proposal_digest,
            proposed_arguments=_proposed_arguments(earlier, event),
            released_by="" if earlier is None else earlier.released_by,
            hold_id="" if earlier is None else earlier.hold_id,
            spent=() if earlier is None else spent_attempts(earlier),
            handed_on=() if earlier is None else earlier.handed_on,
            # An edit or a new tool version is not another request: who writes to the agent meanwhile can decide it.
            senders=len(state.senders) if earlier is None else earlier.senders,
            message=message_of(state) if earlier is None else earlier.message,
            probe=probe_from_text(event.probe),
        ),
    )


def _proposed_arguments(earlier: Call | None, event: c.ToolCallProposed) -> str:
    # A new version of the tool also makes a revision, with unchanged arguments: no person has edited those.
    if earlier is None or earlier.proposed_arguments:
        return "" if earlier is None else earlier.proposed_arguments
    return "" if earlier.arguments == event.arguments else earlier.arguments


def _consumed(state: Execution, event: c.GrantConsumed, at_ms: int) -> Execution:
    earlier = state.calls[event.call_id]
    call = replace(
        earlier,
        status="consumed",
        attempt_id=event.attempt_id,
        spent=spent_attempts(earlier, event.attempt_id),
        consumed_by=event.by,
        run_deadline_at_ms=event.run_deadline_at_ms,
        lease_ms=event.lease_ms or 0,
        lease_until_ms=0 if event.lease_ms is None else at_ms + event.lease_ms,
    )
    if call.is_untrusted:
        state = replace(state, words=state.words.with_reading(call.call_id))
    return with_call(going_on(state), call)


def _renewed(state: Execution, event: c.LeaseRenewed, at_ms: int) -> Execution:
    return with_call(state, replace(state.calls[event.call_id], lease_until_ms=event.lease_until_ms))


def _revoked(state: Execution, event: c.GrantRevoked, at_ms: int) -> Execution:
    status = "expired" if event.reason == "expired" else "revoked"
    return with_call(state, replace(state.calls[event.call_id], status=status))


HANDLERS: Handlers = {
    k.ProposeToolCall: propose,
    k.ConsumeGrant: consume,
    k.RenewLease: renew,
    k.RevokeGrant: revoke,
}
FOLDS: Folds = {
    c.ToolCallProposed: _proposed,
    c.GrantConsumed: _consumed,
    c.LeaseRenewed: _renewed,
    c.GrantRevoked: _revoked,
}
