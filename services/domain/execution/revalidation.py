"""Between release and consumption: a definition that became stricter takes the release back."""

from functools import partial

from schemas.canonical import call_digest
from schemas.requirement import Requirement
from services.domain.arguments import arguments_misfit
from services.domain.authority.authority import requesters_of, roles_as_asked
from services.domain.authority.voices import approves
from services.domain.context import Context
from services.domain.execution.opening import call_hold
from services.domain.execution.verdicts import denial, release, revised, verdict_event
from services.domain.memory.coverage import still_covered
from services.domain.policy import HoldTerms, Verdict
from services.domain.policy.needed import meets, requirements_of
from services.domain.refusals import Events
from services.domain.state import Call, Execution, Hold


def stricter_now(state: Execution, call: Call, ctx: Context) -> Events:
    """What today's definitions make of a released call; nothing where the release still stands."""
    tool = ctx.tool(call.tool)
    version = tool.version if tool else ""
    if version != call.tool_version:
        # Also where the verdict is newer than that: a call proposed during a pause is judged after it.
        return _tool_changed(state, call, version, ctx)
    if call.released_by == "rule":
        return _rule_rests(state, call, ctx)
    if call.definitions_through == ctx.definitions_through:
        return []
    verdict = ctx.judge(state, call)
    decided = _decided(state, call)
    lost = verdict.effect != "allow" and _lost_its_people(state, call, decided, ctx)
    if not (lost or _is_stricter(verdict, call, decided)):
        return []
    return [verdict_event(call, verdict, ctx), *_taken_back(state, call, verdict, ctx)]


def _rule_rests(state: Execution, call: Call, ctx: Context) -> Events:
    """What the policy alone makes of a call whose remembered decision does not cover it any more."""
    verdict = ctx.judge(state, call)
    if verdict.effect == "allow" or still_covered(state, call, verdict, ctx):
        return []
    return [verdict_event(call, verdict, ctx), *_taken_back(state, call, verdict, ctx)]


def allowed_meanwhile(state: Execution, call: Call, ctx: Context) -> Events:
    """The verdict on which a release still stands, where those who gave it may decide it no more; else nothing.

    Without it the log would show a run that nobody who may has approved.
    """
    if call.definitions_through == ctx.definitions_through or call.status != "released":
        return []
    if not _lost_its_people(state, call, _decided(state, call), ctx):
        return []
    return [verdict_event(call, ctx.judge(state, call), ctx)]


def _decided(state: Execution, call: Call) -> Hold | None:
    """The hold by which a person released a call."""
    if call.released_by != "decision" or not call.decision_id:
        return None
    newest = state.holds.get(call.hold_id)
    if newest is not None and newest.decision_id == call.decision_id:
        return newest
    # Who was asked meanwhile what became of an attempt has released nothing.
    return next((hold for hold in state.holds.values() if hold.decision_id == call.decision_id), None)


def _lost_its_people(state: Execution, call: Call, decided: Hold | None, ctx: Context) -> bool:
    """Whether fewer than were asked for still may give the word that they gave."""
    if decided is None:
        return False
    people = ctx.people
    return not approves(decided, partial(requesters_of, state, decided, call, people), people)


def _tool_changed(state: Execution, call: Call, version: str, ctx: Context) -> Events:
    """Another tool stands behind the name: a new revision, and a person's word only counts for the old one."""
    digest = call_digest(state.tenant, call.agent, call.tool, version, call.arguments)
    proposed, new = revised(call, call.requesters[-1], tool_version=version, digest=digest)
    if (misfit := arguments_misfit(call.tool, call.arguments, ctx)) is not None:
        # Nobody could approve it as it stands: the agent is told what does not fit, and proposes another call.
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
    """Whether somebody who could have decided then cannot today: the decision may be one that nobody could make."""
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
