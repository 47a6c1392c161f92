"""The events of a valid decision on a hold: approve, edit, reject or respond."""

from functools import partial
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from schemas.canonical import call_digest
from schemas.commands import DecideHold
from schemas.events import holds as h
from schemas.events.calls import ToolCallFailed, ToolCallSucceeded
from schemas.events.executions import ExecutionFailed
from schemas.events.holds import HoldCause
from schemas.refusals import Refusal
from schemas.requirement import AskedOfEdit, NamesPeople, Requirement, asked_of_edit_to_text
from services.domain.authority.authority import requesters_of, roles_as_asked
from services.domain.authority.vote_counting import approves, vote_of
from services.domain.context import Context
from services.domain.execution.endings import closing_events
from services.domain.execution.opening import call_hold
from services.domain.execution.quota import editing_problem
from services.domain.execution.requests import provided
from services.domain.execution.turns import ended_turns
from services.domain.execution.verdicts import denial, denial_of_probe, release, revised, verdict_event
from services.domain.memory.memory import contradictions, with_memory
from services.domain.policy import HoldTerms, Verdict
from services.domain.policy.hold_terms import ON_REJECT_STRICTNESS
from services.domain.policy.needed import Asks, Needed, all_of
from services.domain.refusals import Events, refuse_decision
from services.domain.state import Call, Execution, Hold

ROLLED_BACK = "a call was rejected, and the run is rolled back"
QUESTION_OF_CHANGE = (
    "The tool's definition changed before this call was edited, and its editor was shown the old one. "
    "May it run under the new one, with the arguments below?"
)
RULES_NAMED_MAX = 3
# The ids of this many calls are about 140 kB in one event, in addition to all endings of a rollback
# (schemas/limits.py).
ROLLBACK_MAX = 1_000


def decision_events(
    state: Execution, hold: Hold, call: Call | None, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    """The events of a decision that has passed all checks."""
    if call is None:
        return _on_request(hold, command, decision_id, ctx)
    if hold.cause == "outcome_unknown":
        return _on_unknown_outcome(state, hold, call, command, decision_id, ctx)
    if call.probe is not None:
        return _on_probe(state, hold, call, command, decision_id, ctx)
    match command.decision:
        case "approve":
            approved = _approved(state, hold, call, command, decision_id, ctx)
            return with_memory(state, hold, call, command, approved, ctx)
        case "edit":
            events = _edited(state, hold, call, command, decision_id, ctx)
        case "reject":
            events = _rejected(state, hold, call, command, decision_id, ctx)
        case _:
            events = _responded(hold, call, command, decision_id, ctx)
    if not isinstance(events[0], h.DecisionRecorded):
        return events
    contrary = contradictions(state, call, hold.hold_id, decision_id, ctx, command.edited_arguments)
    return [events[0], *contrary, *events[1:]]


def recorded(
    hold: Hold, command: DecideHold, decision_id: str, ctx: Context, resolves: bool = True
) -> h.DecisionRecorded:
    """The event that records the decision."""
    return h.DecisionRecorded(
        decision_id=decision_id,
        hold_id=hold.hold_id,
        call_id=hold.call_id,
        revision=hold.revision,
        digest=hold.digest,
        decision=command.decision,
        by=ctx.actor.subject,
        roles=ctx.actor.roles,
        feedback=command.feedback,
        edited_arguments=command.edited_arguments,
        value=command.value,
        scope=command.scope,
        resolves=resolves,
        person=ctx.people.principal_of(ctx.actor.subject),
        view_digest=command.view_digest,
        dwell_ms=command.dwell_ms,
        remember=command.remember,
    )


def completes(state: Execution, hold: Hold, call: Call, ctx: Context) -> bool:
    """True if the actor's approval is the last one that the hold needs."""
    people = ctx.people
    word = vote_of(hold, ctx.actor, people)
    return approves(hold, partial(requesters_of, state, hold, call, people), people, word)


def _approved(
    state: Execution, hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    resolves = completes(state, hold, call, ctx)
    vote = recorded(hold, command, decision_id, ctx, resolves)
    return [vote, release(call, decision_id, "decision", ctx)] if resolves else [vote]


def _rejected(
    state: Execution, hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    vote = recorded(hold, command, decision_id, ctx)
    events: Events = [vote, denial(call, "rejected", command.feedback, decision_id)]
    if hold.on_reject == "halt":
        return events + halted(state, hold, call, "a call was rejected")
    return events + rolled_back(state, hold, ctx) if hold.on_reject == "rollback" else events


def halted(state: Execution, hold: Hold, call: Call | None, error: str) -> Events:
    """The end of the whole run because of one hold; the ends of that hold and its call are recorded elsewhere."""
    rest = closing_events(replace(state, holds=state.holds.delete(hold.hold_id)), error, hold.call_id)
    already_closed = state.closed
    failed = ExecutionFailed(error=error, by="placet:policy")
    return [] if already_closed else [*rest, *ended_turns(state, error), failed]


def rolled_back(state: Execution, hold: Hold, ctx: Context) -> Events:
    """The effect of a rejection under `on_reject: rollback` on the rest of the run, which continues.

    Open calls and holds are cancelled, and the calls that had succeeded are listed, the newest first. The agent
    undoes them by further calls, which are judged like all others.
    """
    rest = closing_events(replace(state, holds=state.holds.delete(hold.hold_id)), ROLLED_BACK, hold.call_id)
    succeeded = sorted(
        (call for call in state.calls.values() if call.succeeded_as),
        key=lambda call: call.succeeded_as,
        reverse=True,
    )
    started = h.RollbackStarted(
        hold_id=hold.hold_id,
        call_id=hold.call_id,
        calls=tuple(call.call_id for call in succeeded[:ROLLBACK_MAX]),
        by=ctx.actor.subject,
    )
    return [*rest, started]


def _responded(hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context) -> Events:
    """An answer in place of a run: the call is denied, and the agent gets the answer as feedback."""
    feedback = command.feedback or command.value or ""
    return [recorded(hold, command, decision_id, ctx), denial(call, "rejected", feedback, decision_id)]


def _edited(
    state: Execution, hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    arguments = command.edited_arguments or ""
    tool = ctx.tool(call.tool)
    version = tool.version if tool else ""
    digest = call_digest(state.tenant, call.agent, call.tool, version, arguments)
    proposed, new = revised(call, ctx.actor.subject, arguments=arguments, tool_version=version, digest=digest)
    verdict = ctx.judge(state, new)
    if verdict.effect == "deny":
        return refuse_decision(
            ctx, command, Refusal.EDIT_DENIED, f"the policy denies the edit: {verdict.detail}"
        )
    terms = stricter_terms(hold, verdict)
    if terms is None:
        detail = "the edited call needs other roles than the hold: reject it, and have it proposed again"
        return refuse_decision(ctx, command, Refusal.EDIT_DENIED, detail)
    if (too_often := editing_problem(call)) is not None:
        return refuse_decision(ctx, command, *too_often)
    vote = recorded(hold, command, decision_id, ctx)
    events: Events = [vote, proposed, verdict_event(new, verdict, ctx)]
    # A person has seen only the version of the tool that the digest names.
    if version != call.tool_version:
        terms = replace(terms, question=QUESTION_OF_CHANGE)
        return [*events, _hold_of_edit(state, hold, new, terms, ctx, "definition_changed")]
    if _editor_suffices(terms, ctx):
        released = release(new, decision_id, "decision", ctx)
        return [*events, released.model_copy(update={"asked": _asked_beside(hold, terms)})]
    if verdict.effect != "hold":
        terms = replace(terms, question=_question_of_edit(terms, ctx.judge(state, call)))
    opened = _hold_of_edit(state, hold, new, terms, ctx)
    events.append(opened)
    return [*events, _editors_vote(opened, command, ctx)] if _editor_counts(terms, ctx) else events


def _hold_of_edit(
    state: Execution, hold: Hold, new: Call, terms: HoldTerms, ctx: Context, cause: HoldCause = "policy"
) -> h.HoldOpened:
    opened = call_hold(state, new, terms, ctx, cause, hold.deadline_at_ms)
    escalate_at_ms = hold.escalate_at_ms if terms.escalate_roles else None
    return opened.model_copy(update={"escalate_at_ms": escalate_at_ms, "remind_at_ms": hold.remind_at_ms})


def _asked_beside(hold: Hold, terms: HoldTerms) -> str | None:
    """The terms of an edit that its editor's own approval released, if they differ from the hold's; else None."""
    asked, named = (convert(one, AskedOfEdit, from_attributes=True) for one in (terms, hold))
    return None if asked == named else asked_of_edit_to_text(asked)


def _editors_vote(opened: h.HoldOpened, command: DecideHold, ctx: Context) -> h.DecisionRecorded:
    """The editor's approval, the first vote in the new count on the new digest. Nobody has seen the new view."""
    return h.DecisionRecorded(
        decision_id=ctx.new_id("decision", opened.hold_id),
        hold_id=opened.hold_id,
        call_id=opened.call_id,
        revision=opened.revision,
        digest=opened.digest,
        decision="approve",
        by=ctx.actor.subject,
        roles=ctx.actor.roles,
        feedback=command.feedback,
        edited_arguments=None,
        value=None,
        scope=command.scope,
        resolves=False,
        person=ctx.people.principal_of(ctx.actor.subject),
    )


def stricter_terms(hold: Hold, verdict: Verdict) -> HoldTerms | None:
    """The authority that an edited call needs: the stricter of the old hold and the new verdict.

    Returns:
        None if the two name disjoint roles: no one person's vote covers both.
    """
    terms = verdict.hold if verdict.effect == "hold" else None
    needed = _needed_by_both(hold, terms)
    if needed is None:
        return None
    source: Any = terms or hold
    escalate_roles = _common_escalation(hold, terms)
    ends = "deny" if hold.on_timeout == "escalate" and not escalate_roles else hold.on_timeout
    return HoldTerms(
        kind=source.kind,
        question=terms.question if terms else "",
        roles=needed.roles,
        reviewers=needed.reviewers,
        requirements=needed.requirements,
        excluded=tuple(dict.fromkeys((*hold.excluded, *(terms.excluded if terms else ())))),
        quorum=needed.quorum,
        exclude_requester=hold.exclude_requester or (terms.exclude_requester if terms else False),
        # The deadline of the old hold: an edit never moves it.
        timeout_ms=None,
        on_timeout="wait" if hold.deadline_at_ms is None else ends,
        on_timeout_default=hold.default_value,
        escalate_after_ms=None,
        escalate_roles=escalate_roles,
        on_reject=max(hold.on_reject, source.on_reject, key=ON_REJECT_STRICTNESS.index),
        remember=terms.remember if terms else None,
    )


def _question_of_edit(terms: HoldTerms, before: Verdict) -> str:
    """The question about an edited call that the policy itself would allow; the hold before the edit is the reason.

    Args:
        terms: the terms of the hold that the edit opens.
        before: the policy's verdict on the call before the edit.
    """
    named = ", ".join(before.rules[:RULES_NAMED_MAX]) if before.effect == "hold" else ""
    more = len(before.rules) - RULES_NAMED_MAX
    rules = f" (by {named}{f' and {more} more' if more > 0 else ''})" if named else ""
    if terms.exclude_requester:
        asks = "a person other than those who requested or edited it"
    elif terms.quorum > 1 or terms.requirements:
        asks = "more people than its editors"
    else:
        asks = "people other than its editors"
    held = f"was held{rules} before it was edited, and that hold asks for {asks}"
    return f"The policy would allow this call as it is now. It {held}. May it run with the arguments below?"


def _needed_by_both(hold: Hold, terms: HoldTerms | None) -> Needed | None:
    """The people that the old hold and the new verdict need together; None if no one person's vote covers both.

    If several rules ask already, the people of each are needed. The same holds if the new rule asks any reviewer: the
    people whom the old rule named need not be reviewers.
    """
    asked: list[Asks] = [hold] if terms is None else [hold, terms]
    if terms is None or any(one.requirements for one in asked) or not _names_people(terms):
        return all_of((one, ()) for one in asked)
    quorum = max(hold.quorum, terms.quorum)
    common = _common_people(hold, terms)
    return None if common is None else Needed(*common, quorum)


def _common_people(hold: Hold, terms: HoldTerms) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The roles and reviewers that both name; the new rule's if the hold asks any reviewer, as the editor is one."""
    asked = roles_as_asked(hold, terms)
    if not _names_people(hold):
        return asked, terms.reviewers
    roles = tuple(role for role in hold.roles if role in asked)
    reviewers = tuple(name for name in hold.reviewers if name in terms.reviewers)
    return (roles, reviewers) if roles or reviewers else None


def _names_people(one: NamesPeople) -> bool:
    return bool(one.roles or one.reviewers)


def _common_escalation(hold: Hold, terms: HoldTerms | None) -> tuple[str, ...]:
    """The roles to which the hold still escalates: those of its own that the verdict also asks, at once or later."""
    if terms is None or not (terms.roles or terms.reviewers):
        return hold.escalate_roles
    return tuple(role for role in hold.escalate_roles if role in (*terms.roles, *terms.escalate_roles))


def _editor_suffices(terms: HoldTerms, ctx: Context) -> bool:
    """True if the editor's own approval releases the edit."""
    return (
        terms.quorum <= 1
        and _editor_counts(terms, ctx)
        and all(one.quorum <= 1 and _is_asked(one, ctx) for one in terms.requirements)
    )


def _editor_counts(terms: HoldTerms, ctx: Context) -> bool:
    """True if the editor's own approval counts for the edit.

    The editor is a requester of the new revision, so the approval does not count if another person is needed.
    """
    people, actor = ctx.people, ctx.actor
    person = people.name_of(actor.subject)
    if terms.exclude_requester or person in map(people.meant_by, terms.excluded):
        return False
    # With no names, both the hold and the verdict ask any reviewer: whoever can decide the one can decide the other.
    return not _names_people(terms) or _is_asked(terms, ctx)


def _is_asked(asked: HoldTerms | Requirement, ctx: Context) -> bool:
    """True if the actor is one of the people named."""
    people, actor = ctx.people, ctx.actor
    by_role = bool(set(asked.roles) & set(actor.roles))
    return by_role or people.is_among(actor.subject, asked.reviewers)


def _on_probe(
    state: Execution, hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    """The vote on a planted call, and with the last one its denial: no revision, no rollback, nothing remembered.

    An edit that a real call would not take is refused here, too.
    """
    if command.decision == "edit":
        edited = _edited(state, hold, call, command, decision_id, ctx)
        if not isinstance(edited[0], h.DecisionRecorded):
            return edited
    resolves = command.decision != "approve" or completes(state, hold, call, ctx)
    vote = recorded(hold, command, decision_id, ctx, resolves)
    return [vote, denial_of_probe(call, decision_id)] if resolves else [vote]


def _on_unknown_outcome(
    state: Execution, hold: Hold, call: Call, command: DecideHold, decision_id: str, ctx: Context
) -> Events:
    resolves = command.decision != "approve" or completes(state, hold, call, ctx)
    vote = recorded(hold, command, decision_id, ctx, resolves)
    if not resolves:
        return [vote]
    settled = {
        "call_id": call.call_id,
        "attempt_id": call.attempt_id,
        "duration_ms": 0,
        "by": ctx.actor.subject,
    }
    match command.decision:
        case "approve":
            return [vote, release(call, decision_id, "decision", ctx)]
        case "reject":
            return [vote, ToolCallFailed(error=command.feedback or "settled as failed", **settled)]
    return [vote, ToolCallSucceeded(output=command.value or "null", **settled)]


def _on_request(hold: Hold, command: DecideHold, decision_id: str, ctx: Context) -> Events:
    vote = recorded(hold, command, decision_id, ctx)
    return [vote, provided(hold, _response(hold, command), ctx.actor.subject)]


def _response(hold: Hold, command: DecideHold) -> str:
    if command.decision == "respond":
        return command.value or "null"
    if hold.kind != "permission":
        # A rejection means no answer. False would be an answer, and not one that the question offers.
        return "null"
    return "true" if command.decision == "approve" else "false"
