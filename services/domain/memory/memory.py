"""The memory of a decision: for its run (`scope: execution`), or as a standing rule (`scope: rule`).

The policy limits it by the `remember` block of the rule that held the call; HoldOpened contains that block. If
several people must approve, all of them must have asked for the same: a remembered decision never has fewer backers
than the decision that it replaces. It replaces asking the same people on the same question only
(`services.domain.memory.coverage`), and the first decision against it ends that.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from schemas.commands import DecideHold
from schemas.events.rules import RuleAsked, RuleContradicted
from schemas.ids import derived_id
from schemas.policy_document import Remember
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.requirement import roles_asked
from schemas.standing_rule import (
    IN_EXECUTION,
    ArgumentTest,
    Asked,
    Evidence,
    Maker,
    RuleRefused,
    StandingRuleDocument,
    Terms,
    asked_form,
    asked_from_text,
    standing_rule_to_text,
)
from services.domain.arguments import parsed
from services.domain.authority.authority import requesters_of
from services.domain.authority.vote_counting import counting, has_voted, is_represented, voice_of, vote_of
from services.domain.context import Context
from services.domain.memory.coverage import is_about, known, plain_rules, would_cover
from services.domain.memory.predicates import exactly, fits, has_sealed
from services.domain.policy import Verdict
from services.domain.refusals import Events
from services.domain.state import Call, Execution, Hold, Vote

DEFAULT_SECONDS = 24 * 60 * 60
DEFAULT_USES = 10
# Later than the end of any run: 2^53 − 1, the largest integer of JSON.
NEVER_MS = 2**53 - 1
MEMORY_MAX = 50
# A refusal quotes what an earlier vote asked for, up to this length.
NAMED_MAX_CHARS = 1_000
NOTHING = Asked()

Problem = tuple[Refusal, str]


def remember_role_problem(hold: Hold, command: DecideHold, ctx: Context) -> Problem | None:
    """The reason why the actor cannot have a decision remembered; it precedes reasons in the content."""
    bounds = None if command.scope == "once" else _bounds(hold)
    if bounds is None or not bounds.roles or set(bounds.roles) & set(ctx.actor.roles):
        return None
    return Refusal.FORBIDDEN_ROLE, f"to remember it you need one of the roles: {', '.join(bounds.roles)}"


def remember_problem(
    state: Execution, hold: Hold, call: Call | None, command: DecideHold, ctx: Context
) -> Problem | None:
    """The reason why a decision cannot be remembered as it asks, or None."""
    if command.scope == "once":
        stray = command.remember is not None
        return (Refusal.INVALID, "remember needs scope execution or rule") if stray else None
    if command.decision != "approve" or call is None:
        return Refusal.INVALID, "only the approval of a held call can be remembered: decide once"
    if hold.status != "open":
        return None  # `holds._closed` reports it.
    bounds = _bounds(hold)
    if bounds is None and hold.cause != "outcome_unknown" and (why := _never(call, ctx.judge(state, call))):
        return Refusal.INVALID, why
    if bounds is None or command.scope not in bounds.scopes:
        return (
            Refusal.INVALID,
            f"a decision on this hold cannot be remembered with scope {command.scope}: decide once",
        )
    try:
        remembered_text(state, hold, call, command, ctx)
        return _unlike_an_earlier_vote(state, hold, call, command, ctx)
    except RuleRefused as error:
        return Refusal.INVALID, str(error)


def remembered_text(state: Execution, hold: Hold, call: Call, command: DecideHold, ctx: Context) -> str:
    """The document of the remembered decision, as canonical JSON.

    Raises:
        RuleRefused: the decision cannot be remembered; the message says what to do.
    """
    bounds = _bounds(hold)
    asked = NOTHING if command.remember is None else asked_from_text(command.remember)
    if bounds is None:
        raise RuleRefused("a decision on this hold cannot be remembered: decide once")
    verdict = ctx.judge(state, call)
    _check(state, call, command, asked, bounds, verdict)
    decision_id = ctx.new_id("decision")
    requesters = requesters_of(state, hold, call, ctx.people)
    makers = _makers(hold, requesters, ctx)
    # They are not second people for a rule that consists of their delegates' approvals.
    spoken_for = frozenset(maker.voice for maker in makers if maker.voice)
    by_rule = command.scope == "rule"
    seconds = (
        min(DEFAULT_SECONDS, bounds.max_seconds) if asked.expires_seconds is None else asked.expires_seconds
    )
    document = StandingRuleDocument(
        rule_id=derived_id("rule", decision_id) if by_rule else IN_EXECUTION + decision_id,
        project=state.project,
        agent=call.agent,
        tool=call.tool,
        tool_version=call.tool_version,
        policy_rules=plain_rules(verdict),
        arguments=_tests(call, asked),
        expires_at_ms=ctx.now_ms + seconds * 1000 if by_rule else NEVER_MS,
        uses=_uses(asked, bounds) if by_rule else None,
        risk_max="low" if verdict.risk.level == "low" else "medium",
        terms=_terms(hold),
        evidence=_evidence(state, hold, command, decision_id),
        requesters=tuple(sorted(requesters | spoken_for)),
        made_by=ctx.actor.subject,
        made_with=makers[-1].roles,
        makers=makers if len(makers) > 1 or spoken_for else (),
        four_eyes=by_rule and bounds.four_eyes,
    )
    if not would_cover(document, call, verdict, ctx):
        raise RuleRefused(
            "the rule would cover no such call, because this hold needs other people than the policy: decide once"
        )
    return standing_rule_to_text(document)


def with_memory(
    state: Execution, hold: Hold, call: Call, command: DecideHold, events: Events, ctx: Context
) -> Events:
    """The events of an approval and of its memory; nothing is remembered while more people have to approve."""
    recorded: Any = events[0]
    if command.scope == "once" or not recorded.resolves:
        return events
    text = remembered_text(state, hold, call, command, ctx)
    if command.scope == "execution":
        return [recorded.model_copy(update={"remember": text}), *events[1:]]
    rule_id = derived_id("rule", recorded.decision_id)
    asked = RuleAsked(rule_id=rule_id, decision_id=recorded.decision_id, document=text, by=ctx.actor.subject)
    return [*events, asked]


def contradictions(
    state: Execution, call: Call, hold_id: str, decision_id: str, ctx: Context, instead: str | None = None
) -> Events:
    """The remembered decisions that a person now contradicts: they cover the call, and the person decided against it.

    Args:
        state: the call's execution.
        call: the call that was rejected, answered, edited or revoked.
        hold_id: the hold that was decided; empty for a revocation.
        decision_id: the decision; empty for a revocation.
        ctx: the decision's context.
        instead: the arguments that an edit released; decisions that cover these too were not contradicted.
    """
    return [
        RuleContradicted(
            rule_id=document.rule_id,
            call_id=call.call_id,
            hold_id=hold_id,
            decision_id=decision_id,
            by=ctx.actor.subject,
        )
        for document in known(state, call, ctx)
        if is_about(document, call, call.arguments)
        and ctx.now_ms < document.expires_at_ms
        and (instead is None or not is_about(document, call, instead))
    ]


def _bounds(hold: Hold) -> Remember | None:
    if hold.remember is None or hold.cause == "outcome_unknown":
        return None
    return Remember.model_validate(parsed(hold.remember))


def _check(
    state: Execution, call: Call, command: DecideHold, asked: Asked, bounds: Remember, verdict: Verdict
) -> None:
    if why := _never(call, verdict):
        raise RuleRefused(why)
    arguments = parsed(call.arguments)
    if unknown := sorted(asked.arguments.keys() - arguments.keys()):
        raise RuleRefused(f"the approved call has no argument {unknown[0]!r}")
    if not fits(_tests(call, asked), arguments):
        raise RuleRefused("the approved call itself does not pass these tests")
    if command.scope == "execution":
        if asked.model_fields_set - {"arguments"}:
            raise RuleRefused("scope execution ends with its run: leave expires_seconds and uses out")
        if len(state.memory) >= MEMORY_MAX:
            raise RuleRefused(f"a run remembers at most {MEMORY_MAX} decisions: decide once")
    if (asked.expires_seconds or 0) > bounds.max_seconds:
        raise RuleRefused(f"expires_seconds: the policy allows at most {bounds.max_seconds}")
    uses = _uses(asked, bounds)
    if bounds.max_uses != "unlimited" and (uses is None or uses > bounds.max_uses):
        raise RuleRefused(f"uses: the policy allows at most {bounds.max_uses}")


def _never(call: Call, verdict: Verdict) -> str:
    """The reason why nothing of a call can be remembered; empty if the policy's rule says what can be."""
    if verdict.reason == "unknown_tool":
        return (
            f"the tool {call.tool} is not published, so decisions on its calls cannot be remembered: decide once,"
            " and publish the tool (placet tool put FILE) for later calls"
        )
    if verdict.reason in ("policy_error", "policy_timeout"):
        return f"the policy failed on this call, so the decision cannot be remembered ({verdict.detail}): decide once"
    if verdict.effect != "hold" or verdict.reason != "matched":
        return "no rule of the policy holds this call, so the decision cannot be remembered: decide once"
    if verdict.risk.level == "high":
        return "a call of high risk is never remembered: decide once"
    if has_sealed(parsed(call.arguments)):
        return "a call with sensitive arguments is never remembered: decide once"
    if verdict.hold is not None and verdict.hold.requirements:
        return "several rules hold this call, and a remembered decision replaces only one: decide once"
    return ""


def _uses(asked: Asked, bounds: Remember) -> int | None:
    if "uses" in asked.model_fields_set:
        return asked.uses
    return DEFAULT_USES if bounds.max_uses == "unlimited" else min(DEFAULT_USES, bounds.max_uses)


def _tests(call: Call, asked: Asked) -> Mapping[str, ArgumentTest]:
    return exactly(parsed(call.arguments)) | asked.arguments


def _unlike_an_earlier_vote(
    state: Execution, hold: Hold, call: Call, command: DecideHold, ctx: Context
) -> Problem | None:
    """The reason why the approvers do not agree on what to remember: an earlier one did not ask for the same."""
    people = ctx.people
    own = partial(requesters_of, state, hold, call, people)
    if has_voted(hold, ctx.actor, people) or is_represented(hold, own, ctx.actor, people):
        return None  # `holds._already_voted` reports it.
    for vote in counting(hold, own, people):
        if vote.scope == "once":
            detail = (
                f"{vote.by} approved this once, and a decision is remembered only if all approvers request it"
            )
            return Refusal.INVALID, f"{detail}: approve once"
        form = asked_form(vote.remember)
        if (vote.scope, form) != (command.scope, asked_form(command.remember)):
            named = f"remember {form}" if len(form) <= NAMED_MAX_CHARS else "the remember of that vote"
            detail = (
                f"{vote.by} requested scope {vote.scope} with {named}: request exactly that, or approve once"
            )
            return Refusal.INVALID, f"{detail} and nothing is remembered"
    return None


def _makers(hold: Hold, requesters: frozenset[str], ctx: Context) -> tuple[Maker, ...]:
    """All whose approvals a remembered decision consists of, the actor last."""
    votes = (*counting(hold, lambda: requesters, ctx.people), vote_of(hold, ctx.actor, ctx.people))
    return tuple(_maker(hold, vote, ctx.people) for vote in votes)


def _maker(hold: Hold, vote: Vote, people: TenantPeople) -> Maker:
    voice = voice_of(hold, vote, people)
    return Maker(
        by=vote.by,
        roles=tuple(sorted(set(roles_asked(hold)) & set(vote.roles))),
        voice="" if voice == people.name_of(vote.by) else voice,
    )


def _terms(hold: Hold) -> Terms:
    return Terms(
        roles=hold.roles,
        reviewers=hold.reviewers,
        excluded=hold.excluded,
        quorum=hold.quorum,
        exclude_requester=hold.exclude_requester,
    )


def _evidence(state: Execution, hold: Hold, command: DecideHold, decision_id: str) -> Evidence:
    return Evidence(
        execution_id=state.execution_id,
        call_id=hold.call_id,
        hold_id=hold.hold_id,
        decision_id=decision_id,
        digest=hold.digest,
        view_digest=command.view_digest,
    )
