"""`evolve`: what each event makes of an execution. It never refuses and never asks why."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict, replace

from schemas.authority import Delegation
from schemas.canonical import as_json, sha256_hex
from schemas.commands import ProposeToolCall, StartExecution
from schemas.display.view import texts_of
from schemas.display.whole import must_be_read_whole
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events import rules as r
from schemas.message import Message
from schemas.requirement import asked_of_edit_from_text, escalated, requirements_from_text
from schemas.standing_rule import standing_rule_from_text
from services.domain.authority.authority import widened
from services.domain.execution import secrets
from services.domain.execution.deadlines import call_due, due_id_of_call, hold_due, is_reserving
from services.domain.state import TERMINAL_CALLS, Call, Execution, Hold, Reservation, Vote

# What a person is shown and no decision looks at.
NOT_KEPT_OF_HOLDS = frozenset({"question", "view_version"})

Step = Callable[[Execution, Any, int], Execution]


def start(key: tuple[str, str, str], event: x.ExecutionStarted) -> Execution:
    """The execution that a start makes."""
    tenant, project, execution_id = key
    return Execution(
        tenant=tenant,
        project=project,
        execution_id=execution_id,
        agent=event.agent,
        user=event.user,
        workspace=event.workspace,
        request=event.request,
        context=event.context,
        start_digest=start_digest(event),
        started_by=event.by,
    )


def evolve(state: Execution, event: Message, at_ms: int) -> Execution:
    """The state after an event; refusals and other records of nothing change nothing."""
    step = _STEPS.get(type(event))
    return state if step is None else step(state, event, at_ms)


def start_digest(body: StartExecution | x.ExecutionStarted) -> str:
    """Names what was asked when the run was started, to tell a repeat from a reuse."""
    return _digest(body.agent, body.user, body.workspace, body.request, body.context)


def proposal_digest(body: ProposeToolCall | c.ToolCallProposed) -> str:
    """Names what the agent proposed, to tell a repeat from a reuse."""
    return _digest(body.tool, body.arguments, body.context, body.claims, body.reason)


def result_digest(text: str) -> str:
    """Names a call's output, or its error where it failed, to tell a repeated report from a contradicting one."""
    return _digest(text)


def _digest(*parts: str) -> str:
    return sha256_hex("".join(f"{len(part)}:{part}" for part in parts))[:32]


def _with_call(state: Execution, call: Call) -> Execution:
    if call.status in TERMINAL_CALLS and (call.arguments or call.spent):
        call = replace(call, arguments="", proposed_arguments="", context="", claims="", reason="", spent=())
    earlier = state.calls.get(call.call_id)
    opened = _is_open_call(call) - _is_open_call(earlier)
    state = replace(state, calls=state.calls.set(call.call_id, call), open_count=state.open_count + opened)
    if state.parked and (call.judged or call.status != "proposed" or is_reserving(call)):
        state = replace(state, parked=tuple(name for name in state.parked if name != call.call_id))
    if is_reserving(call) != (call.call_id in state.reserving):
        others = tuple(name for name in state.reserving if name != call.call_id)
        state = replace(state, reserving=(*others, call.call_id) if is_reserving(call) else others)
    return _with_due(state, due_id_of_call(call.call_id), call_due(call))


def _with_hold(state: Execution, hold: Hold) -> Execution:
    opened = _is_open_request(hold) - _is_open_request(state.holds.get(hold.hold_id))
    state = replace(state, holds=state.holds.set(hold.hold_id, hold), open_count=state.open_count + opened)
    return _with_due(state, hold.hold_id, hold_due(hold))


def _is_open_call(call: Call | None) -> bool:
    return call is not None and call.status not in TERMINAL_CALLS


def _is_open_request(hold: Hold | None) -> bool:
    return hold is not None and not hold.call_id and hold.status == "open"


def _with_due(state: Execution, subject_id: str, at_ms: int | None) -> Execution:
    if state.due.get(subject_id) == at_ms:
        return state
    earliest = state.next_due
    due = state.due.delete(subject_id) if at_ms is None else state.due.set(subject_id, at_ms)
    if earliest is not None and earliest[1] == subject_id:
        # What was earliest has moved or gone: only then all that waits is looked through.
        earliest = min(((at, subject) for subject, at in due.items()), default=None)
    elif at_ms is not None:
        earliest = min(earliest or (at_ms, subject_id), (at_ms, subject_id))
    return replace(state, due=due, next_due=earliest)


def _lifecycle(value: Any) -> Step:
    return lambda state, event, at_ms: replace(state, lifecycle=value)


def _paused(state: Execution, event: x.ExecutionPaused, at_ms: int) -> Execution:
    return replace(state, lifecycle="paused", paused_by_agent=event.agent or "")


def _resumed(state: Execution, event: x.ExecutionResumed, at_ms: int) -> Execution:
    return replace(state, lifecycle="resumed", paused_by_agent="")


def _proposed(state: Execution, event: c.ToolCallProposed, at_ms: int) -> Execution:
    earlier = state.calls.get(event.call_id)
    if state.lifecycle == "paused" and earlier is None:
        state = replace(state, parked=(*state.parked, event.call_id))
    requesters = (event.by,) if earlier is None else _distinct(*earlier.requesters, event.by)
    return _with_call(
        _going_on(state),
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
            spent=() if earlier is None else _spent(earlier),
            handed_on=() if earlier is None else earlier.handed_on,
        ),
    )


def _spent(call: Call, attempt_id: str = "") -> tuple[str, ...]:
    """The attempts that may not have the call again, once `attempt_id` has it or it is released anew."""
    if call.attempt_id in ("", attempt_id, *call.spent):
        return call.spent
    return (*call.spent, call.attempt_id)


def _proposed_arguments(earlier: Call | None, event: c.ToolCallProposed) -> str:
    # Another version of the tool makes a revision too, with the arguments as they were: nobody has edited those.
    if earlier is None or earlier.proposed_arguments:
        return "" if earlier is None else earlier.proposed_arguments
    return "" if earlier.arguments == event.arguments else earlier.arguments


def _judged(state: Execution, event: c.PolicyVerdictIssued, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    return _with_call(state, replace(call, judged=True, definitions_through=event.definitions_through))


def _released(state: Execution, event: c.ToolCallReleased, at_ms: int) -> Execution:
    earlier = state.calls[event.call_id]
    call = replace(
        earlier,
        status="released",
        released_by=event.released_by,
        rule_id=event.rule_id,
        decision_id=event.decision_id,
        grant_id=event.grant_id,
        grant_expires_at_ms=event.expires_at_ms,
        attempt_id="",
        spent=_spent(earlier),
    )
    hold = state.holds.get(earlier.hold_id)
    if event.asked is not None and hold is not None:
        # Whom the edit asked is whom this release rests on, and a second run asks again.
        asked = asked_of_edit_from_text(event.asked)
        state = _with_hold(state, replace(hold, **asdict(asked)))
    return _with_call(state, call)


def _denied(state: Execution, event: c.ToolCallDenied, at_ms: int) -> Execution:
    status = "expired" if event.cause == "timeout" else "denied"
    return _with_call(state, replace(state.calls[event.call_id], status=status))


def _revoked(state: Execution, event: c.GrantRevoked, at_ms: int) -> Execution:
    status = "expired" if event.reason == "expired" else "revoked"
    return _with_call(state, replace(state.calls[event.call_id], status=status))


def _consumed(state: Execution, event: c.GrantConsumed, at_ms: int) -> Execution:
    earlier = state.calls[event.call_id]
    call = replace(
        earlier,
        status="consumed",
        attempt_id=event.attempt_id,
        spent=_spent(earlier, event.attempt_id),
        consumed_by=event.by,
        run_deadline_at_ms=event.run_deadline_at_ms,
        lease_ms=event.lease_ms or 0,
        lease_until_ms=0 if event.lease_ms is None else at_ms + event.lease_ms,
    )
    return _with_call(_going_on(state), call)


def _renewed(state: Execution, event: c.LeaseRenewed, at_ms: int) -> Execution:
    return _with_call(state, replace(state.calls[event.call_id], lease_until_ms=event.lease_until_ms))


def _ended(status: Any) -> Step:
    def step(state: Execution, event: Any, at_ms: int) -> Execution:
        return _with_call(_going_on(state), replace(state.calls[event.call_id], status=status))

    return step


def _failed(state: Execution, event: c.ToolCallFailed, at_ms: int) -> Execution:
    call = replace(state.calls[event.call_id], status="failed", result_digest=result_digest(event.error))
    return _with_call(_going_on(state), call)


def _succeeded(state: Execution, event: c.ToolCallSucceeded, at_ms: int) -> Execution:
    number = state.succeeded_count + 1
    call = replace(
        state.calls[event.call_id],
        status="succeeded",
        succeeded_as=number,
        result_digest=result_digest(event.output),
    )
    return _with_call(replace(_going_on(state), succeeded_count=number), call)


def _hold_opened(state: Execution, event: h.HoldOpened, at_ms: int) -> Execution:
    fields = {name: value for name, value in event.__dict__.items() if name not in NOT_KEPT_OF_HOLDS}
    fields["requirements"] = requirements_from_text(event.requirements)
    fields["default_value"] = None if event.default_value is None else as_json(event.default_value)
    call = state.calls.get(event.call_id)
    must_read = _must_be_read(state, call, event)
    state = _with_hold(state, Hold(opened_at_ms=at_ms, must_read=must_read, **fields))
    if call is None:
        return state
    status = call.status if event.cause == "outcome_unknown" else "held"
    return _with_call(state, replace(call, status=status, hold_id=event.hold_id))


def _must_be_read(state: Execution, call: Call | None, event: h.HoldOpened) -> bool:
    # Without a digest nothing could be named: an earlier version opened it.
    if not event.view_digest:
        return False
    if call is None:
        texts = texts_of(event.view_version, state.request, state.agent, event.question)
        return must_be_read_whole("{}", texts, event.view_version)
    own = (call.agent, call.tool, call.reason, event.question)
    texts = texts_of(event.view_version, state.request, *own)
    return must_be_read_whole(call.arguments or "{}", texts, event.view_version)


def _hold(**changes: Any) -> Step:
    return lambda state, event, at_ms: _with_hold(state, replace(state.holds[event.hold_id], **changes))


def _claimed(state: Execution, event: h.HoldClaimed, at_ms: int) -> Execution:
    hold = replace(state.holds[event.hold_id], claimed_by=event.by, claimed_until_ms=event.until_ms)
    return _with_hold(state, hold)


def _delegated(state: Execution, event: h.HoldDelegated, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    delegations = (*hold.delegations, Delegation(event.by, event.to, event.roles, event.person))
    state = _with_hold(state, replace(hold, delegations=delegations, claimed_by="", claimed_until_ms=None))
    call = state.calls.get(hold.call_id)
    if call is None or hold.hold_id in call.handed_on:
        return state
    return _with_call(state, replace(call, handed_on=(*call.handed_on, hold.hold_id)))


def _extended(state: Execution, event: h.HoldExtended, at_ms: int) -> Execution:
    return _with_hold(state, replace(state.holds[event.hold_id], deadline_at_ms=event.deadline_at_ms))


def _escalated(state: Execution, event: h.HoldEscalated, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    # A hold escalates once: at its next deadline it is denied.
    on_timeout = "deny" if hold.on_timeout == "escalate" else hold.on_timeout
    hold = replace(
        hold,
        roles=widened(hold, event.roles),
        requirements=escalated(hold.requirements),
        deadline_at_ms=event.deadline_at_ms,
        escalate_at_ms=None,
        on_timeout=on_timeout,
    )
    return _with_hold(state, hold)


def _decided(state: Execution, event: h.DecisionRecorded, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    vote = Vote(event.by, event.roles, event.person, len(hold.delegations))
    if not event.resolves and event.scope != "once":
        # The next who approve are compared with it. Of a hold that has ended nobody asks.
        vote = replace(vote, scope=event.scope, remember=event.remember)
    hold = replace(hold, votes=(*hold.votes, vote))
    if event.resolves:
        hold = replace(hold, status="resolved", decision_id=event.decision_id)
    return _with_hold(_remembered(_going_on(state), event), hold)


def _remembered(state: Execution, event: h.DecisionRecorded) -> Execution:
    if event.scope != "execution" or not event.resolves or event.remember is None:
        return state
    return replace(state, memory=(*state.memory, event.remember))


def _contradicted(state: Execution, event: r.RuleContradicted, at_ms: int) -> Execution:
    kept = tuple(text for text in state.memory if standing_rule_from_text(text).rule_id != event.rule_id)
    return replace(state, memory=kept) if len(kept) < len(state.memory) else state


def _reserving(state: Execution, event: r.ReservationAsked, at_ms: int) -> Execution:
    asked = Reservation(event.reservation_id, event.rule_id, event.revision, event.deadline_at_ms)
    return _with_call(state, replace(state.calls[event.call_id], reservation=asked))


def _reserved(state: Execution, event: r.ReservationSettled, at_ms: int) -> Execution:
    call = state.calls[event.call_id]
    if call.reservation is None or call.reservation.reservation_id != event.reservation_id:
        return state
    if state.lifecycle == "paused":
        # Judged once the run goes on, as what is proposed in a pause.
        state = replace(state, parked=(*state.parked, call.call_id))
    settled = replace(call.reservation, settled=True, granted=event.granted)
    return _with_call(state, replace(call, reservation=settled))


def _going_on(state: Execution) -> Execution:
    return replace(state, lifecycle="running") if state.lifecycle == "resumed" else state


def _distinct(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


_STEPS: dict[type[Message], Step] = {
    x.ExecutionPaused: _paused,
    x.ExecutionResumed: _resumed,
    x.ExecutionCompleted: _lifecycle("completed"),
    x.ExecutionFailed: _lifecycle("failed"),
    x.ExecutionCancelled: _lifecycle("cancelled"),
    c.ToolCallProposed: _proposed,
    c.PolicyVerdictIssued: _judged,
    c.ToolCallReleased: _released,
    c.ToolCallDenied: _denied,
    c.ToolCallCancelled: _ended("cancelled"),
    c.GrantConsumed: _consumed,
    c.LeaseRenewed: _renewed,
    c.GrantRevoked: _revoked,
    c.ToolCallSucceeded: _succeeded,
    c.ToolCallFailed: _failed,
    c.ToolCallOutcomeUnknown: _ended("outcome_unknown"),
    h.HoldOpened: _hold_opened,
    h.HoldClaimed: _claimed,
    h.HoldUnclaimed: _hold(claimed_by="", claimed_until_ms=None),
    h.HoldDelegated: _delegated,
    h.HoldExtended: _extended,
    h.HoldEscalated: _escalated,
    h.HoldExpired: _hold(status="expired"),
    h.HoldCancelled: _hold(status="cancelled"),
    h.DecisionRecorded: _decided,
    r.RuleContradicted: _contradicted,
    r.ReservationAsked: _reserving,
    r.ReservationSettled: _reserved,
    h.SecretsDelivered: secrets.delivered,
    h.SecretsErased: secrets.erased,
}
