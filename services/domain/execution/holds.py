"""One hold: claimed, delegated, extended, escalated, and decided on exactly the digest that was shown."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from schemas import commands as k
from schemas.actor import subject_fault
from schemas.authority import Delegation
from schemas.command_rules import range_of
from schemas.events import holds as h
from schemas.events import rules as r
from schemas.limits import DEADLINE_MAX_S
from schemas.message import Message
from schemas.questions.answers import grants
from schemas.refusals import PRECEDENCE, Refusal
from schemas.requirement import escalated, widened
from schemas.standing_rule import standing_rule_from_text
from services.domain.authority.authority import refusal_to_decide, requesters_of
from services.domain.authority.vote_counting import has_voted, is_represented
from services.domain.context import Context
from services.domain.execution.decision_content import Problem, content_problem
from services.domain.execution.decisions import decision_events
from services.domain.execution.digests import alike_digests, decision_digest
from services.domain.execution.folding import Folds, going_on, hold_with, with_call, with_hold
from services.domain.execution.handler import Handlers
from services.domain.execution.quota import delegating_problem
from services.domain.execution.said import with_said
from services.domain.memory.memory import remember_problem, remember_role_problem
from services.domain.refusals import Events, refuse, refuse_decision
from services.domain.state import Call, Execution, Hold, Vote


def decide_hold(state: Execution, command: k.DecideHold, ctx: Context) -> Events:
    """DecideHold: the first valid decision wins; every other is recorded with the id of the decision that won.

    The same account's same decision is no other one, whichever way it comes.
    """
    hold = state.holds.get(command.hold_id)
    if hold is None:
        return refuse_decision(ctx, command, Refusal.NOT_FOUND, "no such hold")
    call = state.calls.get(hold.call_id)
    problem = _decision_problem(state, hold, call, command, ctx)
    if problem is not None and problem[0] is Refusal.ALREADY_DECIDED and _says_the_same(hold, command, ctx):
        return refuse(ctx, command, Refusal.DUPLICATE, "decided so already", hold.hold_id)
    if problem is not None:
        return refuse_decision(ctx, command, *problem, winning_decision_id=hold.decision_id)
    decision_id = ctx.new_id("decision")
    return decision_events(state, hold, call, command, decision_id, ctx)


def claim(state: Execution, command: k.ClaimHold, ctx: Context) -> Events:
    """ClaimHold: shows a claim to the others for a while; it can be repeated, and others can still decide."""

    def problem(hold: Hold) -> Problem | None:
        return _out_of_range(command) or (
            (Refusal.NOT_OPEN, f"claimed by {hold.claimed_by}") if _is_anothers(hold, ctx) else None
        )

    def claimed(hold: Hold) -> Message:
        until_ms = ctx.now_ms + command.seconds * 1000
        return h.HoldClaimed(hold_id=hold.hold_id, by=ctx.actor.subject, until_ms=until_ms)

    return _on_open_hold(state, command, ctx, problem, claimed)


def _out_of_range(command: k.ClaimHold | k.ExtendHold) -> Problem | None:
    # Every command's ranges are checked after it was judged; but no event can have a time that is no long.
    allowed = range_of(type(command), "seconds")
    return None if allowed.allows(command.seconds) else (Refusal.INVALID, f"seconds {allowed.rule}")


def _is_anothers(hold: Hold, ctx: Context) -> bool:
    """True if another person has claimed the hold, and the claim has not ended."""
    runs = hold.claimed_until_ms is None or hold.claimed_until_ms > ctx.now_ms
    name_of = ctx.people.name_of
    return bool(hold.claimed_by) and runs and name_of(hold.claimed_by) != name_of(ctx.actor.subject)


def unclaim(state: Execution, command: k.ReleaseHold, ctx: Context) -> Events:
    """ReleaseHold: end a claim; an operator can end another person's."""

    def problem(hold: Hold) -> Problem | None:
        if not hold.claimed_by:
            return Refusal.NOT_OPEN, "nobody has claimed it"
        if _is_anothers(hold, ctx) and not ctx.actor.has("operator"):
            return Refusal.NOT_AUTHORISED, f"claimed by {hold.claimed_by}"
        return None

    def freed(hold: Hold) -> Message:
        return h.HoldUnclaimed(hold_id=hold.hold_id, by=ctx.actor.subject)

    return _on_open_hold(state, command, ctx, problem, freed)


def delegate(state: Execution, command: k.DelegateHold, ctx: Context) -> Events:
    """DelegateHold: another subject can decide it too, except if it is the delegate's own request."""

    def problem(hold: Hold) -> Problem | None:
        if (fault := subject_fault(command.to)) is not None:
            # A hold delegated to a name that only looks like a person's would wait for nobody.
            return Refusal.INVALID, f"to: {fault}: no token can have such a subject"
        people = ctx.people
        is_own = people.meant_by(command.to) == people.name_of(ctx.actor.subject)
        return (Refusal.INVALID, "name another person") if is_own else delegating_problem(hold)

    def delegated(hold: Hold) -> Message:
        actor = ctx.actor
        person = ctx.people.principal_of(actor.subject)
        return h.HoldDelegated(
            hold_id=hold.hold_id, by=actor.subject, to=command.to, roles=actor.roles, person=person
        )

    return _on_open_hold(state, command, ctx, problem, delegated)


def extend(state: Execution, command: k.ExtendHold, ctx: Context) -> Events:
    """ExtendHold: move the deadline by seconds from its present value."""

    def problem(hold: Hold) -> Problem | None:
        if (wrong := _out_of_range(command)) is not None:
            return wrong
        if hold.deadline_at_ms is None:
            return Refusal.INVALID, "this hold has no deadline"
        too_far = moved(hold.deadline_at_ms) > ctx.now_ms + DEADLINE_MAX_S * 1000
        return (
            (Refusal.INVALID, f"a deadline is at most {DEADLINE_MAX_S} seconds from now") if too_far else None
        )

    def moved(deadline_at_ms: int) -> int:
        return deadline_at_ms + command.seconds * 1000

    def extended(hold: Hold) -> Message:
        deadline = moved(hold.deadline_at_ms or ctx.now_ms)
        return h.HoldExtended(hold_id=hold.hold_id, by=ctx.actor.subject, deadline_at_ms=deadline)

    return _on_open_hold(state, command, ctx, problem, extended)


def escalate(state: Execution, command: k.EscalateHold, ctx: Context) -> Events:
    """EscalateHold: ask the roles of the rule's escalation at once."""

    def problem(hold: Hold) -> Problem | None:
        nobody = (Refusal.INVALID, "the rule has no roles to escalate to")
        return None if hold.escalate_roles else nobody

    def escalated(hold: Hold) -> Message:
        return escalation(hold, ctx.actor.subject, hold.deadline_at_ms)

    return _on_open_hold(state, command, ctx, problem, escalated)


def escalation(hold: Hold, by: str, deadline_at_ms: int | None) -> h.HoldEscalated:
    """The event after which the escalation's roles can decide as well."""
    return h.HoldEscalated(
        hold_id=hold.hold_id, by=by, roles=hold.escalate_roles, deadline_at_ms=deadline_at_ms
    )


def _on_open_hold(
    state: Execution,
    command: Any,
    ctx: Context,
    problem: Callable[[Hold], Problem | None],
    act: Callable[[Hold], Message],
) -> Events:
    """The one event of a command on an open hold, or its refusal with the reason that comes first in precedence."""
    hold = state.holds.get(command.hold_id)
    if hold is None:
        return refuse(ctx, command, Refusal.NOT_FOUND, "no such hold", command.hold_id)
    against = (
        refusal_to_decide(state, hold, state.calls.get(hold.call_id), ctx),
        _closed(state, hold, ctx),
        problem(hold),
    )
    first = _first(*against)
    return [act(hold)] if first is None else refuse(ctx, command, *first, hold.hold_id)


def _first(*against: Problem | None) -> Problem | None:
    """The reason that comes first in precedence."""
    reasons = (reason for reason in against if reason is not None)
    return min(reasons, key=lambda reason: PRECEDENCE[reason[0]], default=None)


def _decision_problem(
    state: Execution, hold: Hold, call: Call | None, command: k.DecideHold, ctx: Context
) -> Problem | None:
    """The first reason against a decision, in the refusals' order of precedence."""
    return (
        refusal_to_decide(state, hold, call, ctx)
        or remember_role_problem(hold, command, ctx)
        or _what_is_wrong(state, hold, call, command, ctx)
        or _closed(state, hold, ctx)
        or _run_over(state, hold, command)
        or _already_voted(state, hold, call, command, ctx)
        or _other_digest(hold, command)
    )


def _what_is_wrong(
    state: Execution, hold: Hold, call: Call | None, command: k.DecideHold, ctx: Context
) -> Problem | None:
    """The first reason against what a decision says, whoever decides."""
    wrong = content_problem(hold, call, command, ctx)
    return _first(
        wrong,
        _names_no_digest(hold, command),
        # What gives a permission is not to be seen from an answer that is none.
        None if wrong and command.decision == "respond" else _not_seen_whole(hold, command),
        remember_problem(state, hold, call, command, ctx),
    )


def _closed(state: Execution, hold: Hold, ctx: Context) -> Problem | None:
    match hold.status:
        case "resolved":
            return Refusal.ALREADY_DECIDED, _decided_already(hold, ctx)
        case "expired":
            return Refusal.EXPIRED, "the deadline has passed: what the hold says of that took effect"
        case "cancelled" if state.closed:
            return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}"
        case "cancelled":
            return Refusal.NOT_OPEN, "the call or question of this hold no longer waits for a decision"
    return None


def _decided_already(hold: Hold, ctx: Context) -> str:
    if not hold.votes:
        return "it was already decided"
    by, name_of = hold.votes[-1].by, ctx.people.name_of
    if by == ctx.actor.subject:
        return f"{by} decided it already"
    is_own = name_of(by) == name_of(ctx.actor.subject)
    return f"{by} decided it first{', another account of the same person' if is_own else ''}"


def _says_the_same(hold: Hold, command: k.DecideHold, ctx: Context) -> bool:
    """True if the decision that resolved the hold was this one, by the same account, of the same person.

    A proof of what was shown may be left out, as by a way in that cannot name it, but not be of something else. Only
    what came too late is compared: so whoever has to read the hold in full first was refused before.
    """
    actor = ctx.actor
    if not hold.votes or _other_digest(hold, command) is not None:
        return False
    vote, known = hold.votes[-1], ("", ctx.people.principal_of(actor.subject))
    alike = alike_digests(command, is_permission=hold.kind == "permission" and not hold.call_id)
    return vote.by == actor.subject and vote.said in alike and vote.person in known


def _run_over(state: Execution, hold: Hold, command: k.DecideHold) -> Problem | None:
    # Only a call with an unknown outcome waits beyond the end of its run: it can be settled, but not run again.
    if state.closed and command.decision == "approve":
        return Refusal.EXECUTION_CLOSED, f"the execution is {state.lifecycle}: reject or respond"
    return None


def _already_voted(
    state: Execution, hold: Hold, call: Call | None, command: k.DecideHold, ctx: Context
) -> Problem | None:
    people = ctx.people
    if has_voted(hold, ctx.actor, people):
        return Refusal.ALREADY_VOTED, "one person counts once"
    # A delegator can still reject, edit or respond.
    own = partial(requesters_of, state, hold, call, people)
    if command.decision == "approve" and is_represented(hold, own, ctx.actor, people):
        return Refusal.ALREADY_VOTED, "a person who delegated the hold and their delegate count once"
    return None


def _names_no_digest(hold: Hold, command: k.DecideHold) -> Problem | None:
    # A decision on a request needs no digest: a request is never asked again with other words.
    if command.digest or not hold.call_id:
        return None
    return (
        Refusal.INVALID,
        "digest: send the hold's digest, which is of exactly the arguments that were shown",
    )


def _not_seen_whole(hold: Hold, command: k.DecideHold) -> Problem | None:
    if not hold.must_read or command.view_digest or not _approves(hold, command):
        return None
    where = f"/v1/holds/{hold.hold_id}"
    seen = f"GET {where}/view, and send its view_digest to POST {where}/decision (placet approve does both)"
    return Refusal.INVALID, f"this hold is long or has hidden content: read it in full first: {seen}"


def _approves(hold: Hold, command: k.DecideHold) -> bool:
    if command.decision == "respond":
        # An answer in place of a call means that it does not run.
        return not hold.call_id and grants(hold.kind, command.value or "null")
    return command.decision in ("approve", "edit")


def _other_digest(hold: Hold, command: k.DecideHold) -> Problem | None:
    if command.view_digest and command.view_digest != hold.view_digest:
        return Refusal.DIGEST_MISMATCH, "what was shown is not the view of this hold: read it again"
    if command.digest == hold.digest or (not command.digest and not hold.call_id):
        return None
    what = "arguments other than those" if hold.call_id else "a question other than that"
    return Refusal.DIGEST_MISMATCH, f"the decision is about {what} of the hold: read it again"


def _claimed(state: Execution, event: h.HoldClaimed, at_ms: int) -> Execution:
    hold = replace(state.holds[event.hold_id], claimed_by=event.by, claimed_until_ms=event.until_ms)
    return with_hold(state, hold)


def _delegated(state: Execution, event: h.HoldDelegated, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    delegations = (*hold.delegations, Delegation(event.by, event.to, event.roles, event.person))
    state = with_hold(state, replace(hold, delegations=delegations, claimed_by="", claimed_until_ms=None))
    call = state.calls.get(hold.call_id)
    if call is None or hold.hold_id in call.handed_on:
        return state
    return with_call(state, replace(call, handed_on=(*call.handed_on, hold.hold_id)))


def _extended(state: Execution, event: h.HoldExtended, at_ms: int) -> Execution:
    return with_hold(state, replace(state.holds[event.hold_id], deadline_at_ms=event.deadline_at_ms))


def _escalated(state: Execution, event: h.HoldEscalated, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    # A hold escalates once: if it times out again, it is denied.
    on_timeout = "deny" if hold.on_timeout == "escalate" else hold.on_timeout
    hold = replace(
        hold,
        roles=widened(hold, event.roles),
        requirements=escalated(hold.requirements),
        deadline_at_ms=event.deadline_at_ms,
        escalate_at_ms=None,
        on_timeout=on_timeout,
    )
    return with_hold(state, hold)


def _decided(state: Execution, event: h.DecisionRecorded, at_ms: int) -> Execution:
    hold = state.holds[event.hold_id]
    vote = Vote(event.by, event.roles, event.person, len(hold.delegations))
    if event.resolves:
        vote = replace(vote, said=decision_digest(event))
    elif event.scope != "once":
        # The approvals that follow are compared with it. A hold that has ended needs it no more.
        vote = replace(vote, scope=event.scope, remember=event.remember)
    hold = replace(hold, votes=(*hold.votes, vote))
    if event.resolves:
        hold = replace(hold, status="resolved", decision_id=event.decision_id)
    return with_hold(with_said(_remembered(going_on(state), event), event), hold)


def _remembered(state: Execution, event: h.DecisionRecorded) -> Execution:
    if event.scope != "execution" or not event.resolves or event.remember is None:
        return state
    return replace(state, memory=(*state.memory, event.remember))


def _contradicted(state: Execution, event: r.RuleContradicted, at_ms: int) -> Execution:
    kept = tuple(text for text in state.memory if standing_rule_from_text(text).rule_id != event.rule_id)
    return replace(state, memory=kept) if len(kept) < len(state.memory) else state


HANDLERS: Handlers = {
    k.ClaimHold: claim,
    k.ReleaseHold: unclaim,
    k.EscalateHold: escalate,
    k.DelegateHold: delegate,
    k.ExtendHold: extend,
    k.DecideHold: decide_hold,
}
FOLDS: Folds = {
    h.HoldClaimed: _claimed,
    h.HoldUnclaimed: hold_with(claimed_by="", claimed_until_ms=None),
    h.HoldDelegated: _delegated,
    h.HoldExtended: _extended,
    h.HoldEscalated: _escalated,
    h.HoldReminded: hold_with(remind_at_ms=None),
    h.HoldExpired: hold_with(status="expired"),
    h.DecisionRecorded: _decided,
    r.RuleContradicted: _contradicted,
}
