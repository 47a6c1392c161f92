"""Checks between release and consumption: a definition that became stricter revokes the release."""

from functools import partial

from schemas.canonical import call_digest
from schemas.requirement import Requirement
from services.domain.arguments import arguments_misfit
from services.domain.authority.authority import requesters_of, roles_as_asked
from services.domain.authority.vote_counting import approves
from services.domain.context import Context
from services.domain.execution.opening import call_hold
from services.domain.execution.verdicts import denial, release, revised, verdict_event
from services.domain.memory.coverage import still_covered
from services.domain.policy import HoldTerms, Verdict
from services.domain.policy.needed import meets, requirements_of
from services.domain.refusals import Events
from services.domain.state import Call, Execution, Hold


def stricter_now(state: Execution, call: Call, ctx: Context) -> Events:
    """The events if today's definitions are stricter on a released call; none if the release is still valid."""
    tool = ctx.tool(call.tool)
    version = tool.version if tool else ""
    if version != call.tool_version:
        # Even if the verdict is newer than the new version: a call proposed during a pause is judged after the pause.
        return _tool_changed(state, call, version, ctx)
    if call.released_by == "rule":
        return _rule_rests(state, call, ctx)
    if call.definitions_through == ctx.definitions_through:
        return []
    verdict = ctx.judge(state, call)
    if _trust_stands(call, verdict):
        return []
    decided = _decided(state, call)
    lost = verdict.effect != "allow" and _lost_its_people(state, call, decided, ctx)
    if not (lost or _is_stricter(verdict, call, decided)):
        return []
    return [verdict_event(call, verdict, ctx), *_taken_back(state, call, verdict, ctx)]


def _trust_stands(call: Call, verdict: Verdict) -> bool:
    """True if trust has released a call, and would release it again."""
    answer = verdict.adaptive
    if answer is None or not (call.by_trust and call.released_by == "policy"):
        return False
    # A policy that samples every call releases none.
    return answer.is_eligible and answer.sample_rate < 1


def _rule_rests(state: Execution, call: Call, ctx: Context) -> Events:
    """The events of the policy's own verdict on a call that its remembered decision no longer covers."""
    verdict = ctx.judge(state, call)
    if verdict.effect == "allow" or still_covered(state, call, verdict, ctx):
        return []
    return [verdict_event(call, verdict, ctx), *_taken_back(state, call, verdict, ctx)]


def allowed_meanwhile(state: Execution, call: Call, ctx: Context) -> Events:
    """The verdict that keeps a release valid although its approvers can no longer decide the hold; else nothing.

    Without it the log would show a run without the approval of anyone who can give it.
    """
    if call.definitions_through == ctx.definitions_through or call.status != "released":
        return []
    if not _lost_its_people(state, call, _decided(state, call), ctx):
        return []
    return [verdict_event(call, ctx.judge(state, call), ctx)]


def _decided(state: Execution, call: Call) -> Hold | None:
    """The hold by which people released a call."""
    if call.released_by != "decision" or not call.decision_id:
        return None
    newest = state.holds.get(call.hold_id)
    if newest is not None and newest.decision_id == call.decision_id:
        return newest
    # A later hold about the outcome of an attempt has released nothing.
    return next((hold for hold in state.holds.values() if hold.decision_id == call.decision_id), None)


def _lost_its_people(state: Execution, call: Call, decided: Hold | None, ctx: Context) -> bool:
    """True if fewer approvers than needed could still approve the hold."""
    if decided is None:
        return False
    people = ctx.people
    return not approves(decided, partial(requesters_of, state, decided, call, people), people)


def _tool_changed(state: Execution, call: Call, version: str, ctx: Context) -> Events:
    """A new version of the tool makes a new revision; the approval of the old one does not count for it."""
    digest = call_digest(state.tenant, call.agent, call.tool, version, call.arguments)
    proposed, new = revised(call, call.requesters[-1], tool_version=version, digest=digest)
    if (misfit := arguments_misfit(call.tool, call.arguments, ctx)) is not None:
        # Nobody could approve the call unchanged: the agent learns what does not fit, and proposes another call.
        return [proposed, denial(new, "policy", f"the tool has changed: {misfit}")]
    verdict = ctx.judge(state, new)
    events: Events = [proposed, verdict_event(new, verdict, ctx)]
    if verdict.effect == "allow" and call.released_by in ("policy", "rule"):
        return [*events, release(new, call.decision_id, "policy", ctx)]
    return events + _taken_back(state, new, verdict, ctx)


def _taken_back(state: Execution, call: Call, verdict: Verdict, ctx: Context) -> Events:
    if verdict.effect == "deny":
        return [denial(call, "policy", verdict.detail)]
    terms = verdict.hold or _terms_of(state.holds[call.hold_id])
    return [call_hold(state, call, terms, ctx, cause="definition_changed")]


def _is_stricter(verdict: Verdict, call: Call, decided: Hold | None) -> bool:
    if verdict.effect == "allow":
        return False
    terms = verdict.hold
    if terms is None or call.released_by == "policy" or decided is None:
        return True
    if not all(any(meets(was, one) for was in requirements_of(decided)) for one in terms.requirements):
        return True
    more_people = terms.quorum > decided.quorum
    fewer_may = not set(terms.excluded) <= set(decided.excluded)
    excludes = fewer_may or (terms.exclude_requester and not decided.exclude_requester)
    return more_people or excludes or _asks_others(terms, decided)


def _asks_others(terms: HoldTerms, decided: Hold) -> bool:
    """True if somebody who could decide then cannot today: perhaps nobody could make that decision now."""
    if terms.requirements:
        return False
    today = Requirement((), roles_as_asked(decided, terms), terms.reviewers, terms.quorum)
    return not any(meets(was, today) for was in requirements_of(decided))


def _terms_of(hold: Hold) -> HoldTerms:
    timeout_ms = None if hold.deadline_at_ms is None else hold.deadline_at_ms - hold.opened_at_ms
    return HoldTerms(
        kind=hold.kind,
        question="The tool's definition changed after this was approved. Approve it again?",
        roles=hold.roles,
        quorum=hold.quorum,
        exclude_requester=hold.exclude_requester,
        timeout_ms=timeout_ms,
        on_timeout=hold.on_timeout if hold.deadline_at_ms is not None else "wait",
        on_timeout_default=hold.default_value,
        escalate_after_ms=None,
        escalate_roles=hold.escalate_roles,
        on_reject=hold.on_reject,
        reviewers=hold.reviewers,
        excluded=hold.excluded,
        requirements=hold.requirements,
    )
