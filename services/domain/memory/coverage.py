"""Which remembered decision covers a call: a standing rule in force here, or one that the run remembers.

A remembered decision never overrules a denial, a policy that failed, or a policy that asks for more than the people
who decided; it only takes the place of asking the same people about the same thing again.
"""

from collections.abc import Iterable, Iterator

from schemas.ids import derived_id
from schemas.policy_document import Remember
from schemas.principals import TenantPeople
from schemas.requirement import roles_asked
from schemas.standing_rule import IN_EXECUTION, StandingRuleDocument, Terms, standing_rule_from_text
from services.domain.arguments import parsed
from services.domain.authority.authority import people_behind
from services.domain.authority.backing import is_behind, still_stands
from services.domain.context import Context, InForce
from services.domain.memory.predicates import fits, has_sealed
from services.domain.memory.standing_rules import ApprovedValues, StandingRule
from services.domain.policy import HoldTerms, Verdict
from services.domain.policy.remembered import may_be_stood_in_for
from services.domain.state import Call, Execution

RISKS = ("low", "medium", "high")


def remembered_for(
    state: Execution, call: Call, verdict: Verdict, ctx: Context
) -> Iterator[StandingRuleDocument]:
    """What covers a held call: what the run remembers first, then rules without a limit of uses, then the others."""
    if verdict.effect != "hold":
        return
    for rule in _in_execution(state):
        if covers(rule, state, call, verdict, ctx):
            yield rule.document
    granted = call.reservation.rule_id if call.reservation and call.reservation.granted else ""
    rules = ctx.standing(state.project, call.agent, call.tool)
    usable = [rule for rule in rules if not rule.spent or rule.document.rule_id == granted]
    for rule in sorted(usable, key=lambda rule: rule.document.uses is not None):
        if covers(rule, state, call, verdict, ctx):
            yield rule.document


def _in_execution(state: Execution) -> Iterator[InForce]:
    """What the run remembers of its own decisions, the newest first."""
    yield from (InForce(standing_rule_from_text(text)) for text in reversed(state.memory))


def still_covered(state: Execution, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """Whether what released a call would still release it."""
    return any(
        rule.document.rule_id == call.rule_id and covers(rule, state, call, verdict, ctx)
        for rule in _every(state, call, ctx)
    )


def known(state: Execution, call: Call, ctx: Context) -> Iterator[StandingRuleDocument]:
    """All that is remembered for the call's agent and tool, whatever its arguments are."""
    return (rule.document for rule in _every(state, call, ctx))


def _every(state: Execution, call: Call, ctx: Context) -> Iterator[InForce]:
    yield from _in_execution(state)
    yield from ctx.standing(state.project, call.agent, call.tool)


def covers(rule: InForce, state: Execution, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """Whether a remembered decision stands in for the people whom the policy asks about a call."""
    terms = verdict.hold
    return (
        terms is not None
        and would_cover(rule.document, call, verdict, ctx)
        and _stands_for(rule, terms, state, call, ctx.people)
    )


def approved_values(
    rules: Iterable[StandingRule],
    state: Execution,
    call: Call,
    verdict: Verdict,
    people: TenantPeople,
    now_ms: int,
) -> ApprovedValues:
    """What a policy's `memory.approved` has for a call: values of rules that stand in for those whom it asks.

    A rule counts where it would cover the call, but for the other arguments.

    Args:
        rules: of those that are active for the call's agent and tool the ones that name values.
        state: the call's execution.
        call: the call.
        verdict: what the policy says of it where nothing is remembered.
        people: of the tenant.
        now_ms: the log's time.
    """
    terms = verdict.hold
    if terms is None or not may_be_stood_in_for(verdict) or has_sealed(parsed(call.arguments or "{}")):
        return ApprovedValues(())
    return ApprovedValues(
        tuple(
            rule
            for rule in rules
            if _answers(rule.document, call, verdict, now_ms)
            and _stands_for(InForce(rule.document, activators=rule.activators), terms, state, call, people)
        )
    )


def names_values(rule: StandingRule, call: Call, people: TenantPeople, now_ms: int) -> bool:
    """Whether a rule names any values for a call, whatever the policy asks: one with a limit of uses never does.

    What the policy allows by a value takes no use.
    """
    document = rule.document
    return (
        document.uses is None
        and document.tool_version == call.tool_version
        and now_ms < document.expires_at_ms
        and still_stands(document, rule.activators, people, document.terms.quorum)
    )


def would_cover(document: StandingRuleDocument, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """Whether a remembered decision is about a call that the policy holds, whoever stands behind it."""
    return _answers(document, call, verdict, ctx.now_ms) and is_about(document, call, call.arguments)


def _answers(document: StandingRuleDocument, call: Call, verdict: Verdict, now_ms: int) -> bool:
    """Whether a remembered decision answers what a hold asks, whatever the call's arguments are."""
    terms = verdict.hold
    return (
        verdict.effect == "hold"
        and terms is not None
        and not terms.requirements
        and verdict.reason == "matched"
        and document.tool_version == call.tool_version
        and now_ms < document.expires_at_ms
        and set(plain_rules(verdict)) <= set(document.policy_rules)
        and RISKS.index(verdict.risk.level) <= RISKS.index(document.risk_max)
        and not asks_more(terms, document.terms)
        and may_be_remembered(terms, document)
    )


def is_about(document: StandingRuleDocument, call: Call, arguments: str) -> bool:
    """Whether a remembered decision is about a call with these arguments, however it is judged."""
    if (document.agent, document.tool) != (call.agent, call.tool):
        return False
    value = parsed(arguments or "{}")
    return fits(document.arguments, value) and not has_sealed(value)


def plain_rules(verdict: Verdict) -> tuple[str, ...]:
    """The verdict's rules as `policy/rule`, without the policy's version."""
    return tuple(f"{policy.rpartition('@')[0]}/{rule}" for policy, _, rule in _parts_of(verdict))


def _parts_of(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    return (rule.rpartition("/") for rule in verdict.rules)


def asks_more(terms: HoldTerms, decided: Terms) -> bool:
    """Whether terms ask for more than those that a decision was made under."""
    if terms.quorum > decided.quorum or not set(terms.excluded) <= set(decided.excluded):
        return True
    if terms.exclude_requester and not decided.exclude_requester:
        return True
    same_people = set(decided.reviewers) <= set(terms.reviewers)
    return not (same_people and set(roles_asked(decided)) <= set(roles_asked(terms)))


def may_be_remembered(terms: HoldTerms, document: StandingRuleDocument) -> bool:
    """Whether today's policy lets such a decision be remembered, by as many people as this one."""
    if terms.remember is None:
        return False
    today = Remember.model_validate(parsed(terms.remember))
    if is_of_execution(document.rule_id):
        return "execution" in today.scopes
    return "rule" in today.scopes and (document.four_eyes or not today.four_eyes)


def _stands_for(rule: InForce, terms: HoldTerms, state: Execution, call: Call, people: TenantPeople) -> bool:
    """Whether those behind it are as many as are asked, all still may, and none has asked for the call."""
    if not still_stands(rule.document, rule.activators, people, terms.quorum):
        return False
    asking = people.names_of(call.requesters) | people_behind(state, people)
    return not (terms.exclude_requester and is_behind(rule.document, rule.activators, asking, people))


def contradiction_id(where: tuple[str, str, str], rule_id: str, call_id: str, decision_id: str) -> str:
    """Names one contradiction of a rule in an execution (tenant, project, id), wherever it is carried."""
    return derived_id("contradiction", *where, rule_id, call_id, decision_id)


def is_of_execution(rule_id: str) -> bool:
    """Whether a remembered decision is a run's own, and no standing rule."""
    return rule_id.startswith(IN_EXECUTION)
