"""Coverage: which remembered decision covers a call, a standing rule in force here or a decision of the run.

A remembered decision never overrules a denial, a policy that failed, or a policy that asks for more than the people
who decided. It only saves asking the same people about the same thing again.
"""

from collections.abc import Iterable, Iterator

from schemas.ids import derived_id
from schemas.policy_document import Remember
from schemas.principals import TenantPeople
from schemas.requirement import roles_asked
from schemas.standing_rule import IN_EXECUTION, StandingRuleDocument, Terms, standing_rule_from_text
from services.domain.arguments import parsed
from services.domain.authority.authority import people_behind, senders_before
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
    """What covers a held call: the run's own memory first, then rules without a limit of uses, then the others."""
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
    """The run's own remembered decisions, the newest first."""
    yield from (InForce(standing_rule_from_text(text)) for text in reversed(state.memory))


def still_covered(state: Execution, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """True if the remembered decision that released a call would release it again."""
    return any(
        rule.document.rule_id == call.rule_id and covers(rule, state, call, verdict, ctx)
        for rule in _every(state, call, ctx)
    )


def known(state: Execution, call: Call, ctx: Context) -> Iterator[StandingRuleDocument]:
    """Everything remembered for the call's agent and tool, for any arguments."""
    return (rule.document for rule in _every(state, call, ctx))


def _every(state: Execution, call: Call, ctx: Context) -> Iterator[InForce]:
    yield from _in_execution(state)
    yield from ctx.standing(state.project, call.agent, call.tool)


def covers(rule: InForce, state: Execution, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """True if a remembered decision replaces asking the people whom the policy asks about a call."""
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
    """The content of a policy's `memory.approved` for a call: the values of rules that replace asking its people.

    A rule counts if it would cover the call but for the call's arguments.

    Args:
        rules: the active rules for the call's agent and tool that name values.
        state: the call's execution.
        call: the call.
        verdict: the policy's verdict without anything remembered.
        people: the tenant's people.
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
    """True if a rule can name values for a call, whatever the policy asks; a rule with a limit of uses never does.

    (A call that the policy allows because of a value does not take a use.)
    """
    document = rule.document
    return (
        document.uses is None
        and document.tool_version == call.tool_version
        and now_ms < document.expires_at_ms
        and still_stands(document, rule.activators, people, document.terms.quorum)
    )


def would_cover(document: StandingRuleDocument, call: Call, verdict: Verdict, ctx: Context) -> bool:
    """True if a remembered decision is about a call that the policy holds, without regard to its backers."""
    return _answers(document, call, verdict, ctx.now_ms) and is_about(document, call, call.arguments)


def _answers(document: StandingRuleDocument, call: Call, verdict: Verdict, now_ms: int) -> bool:
    """True if a remembered decision answers what a hold asks, for any arguments."""
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
    """True if a remembered decision is about a call with these arguments, for any verdict."""
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
    """True if terms ask for more than the terms of a remembered decision."""
    if terms.quorum > decided.quorum or not set(terms.excluded) <= set(decided.excluded):
        return True
    if terms.exclude_requester and not decided.exclude_requester:
        return True
    same_people = set(decided.reviewers) <= set(terms.reviewers)
    return not (same_people and set(roles_asked(decided)) <= set(roles_asked(terms)))


def may_be_remembered(terms: HoldTerms, document: StandingRuleDocument) -> bool:
    """True if today's policy allows remembering such a decision with the backers that this one has."""
    if terms.remember is None:
        return False
    today = Remember.model_validate(parsed(terms.remember))
    if is_of_execution(document.rule_id):
        return "execution" in today.scopes
    return "rule" in today.scopes and (document.four_eyes or not today.four_eyes)


def _stands_for(rule: InForce, terms: HoldTerms, state: Execution, call: Call, people: TenantPeople) -> bool:
    """True if the backers are as many as needed and can all still decide, and none of them requested the call."""
    if not still_stands(rule.document, rule.activators, people, terms.quorum):
        return False
    senders = people.meant_by_any(senders_before(state, call))
    asking = people.names_of(call.requesters) | senders | people_behind(state, people)
    return not (terms.exclude_requester and is_behind(rule.document, rule.activators, asking, people))


def contradiction_id(where: tuple[str, str, str], rule_id: str, call_id: str, decision_id: str) -> str:
    """The id of one contradiction of a rule in an execution (tenant, project, id), on every partition."""
    return derived_id("contradiction", *where, rule_id, call_id, decision_id)


def is_of_execution(rule_id: str) -> bool:
    """True if a remembered decision belongs to a run and is not a standing rule."""
    return rule_id.startswith(IN_EXECUTION)
