"""Standing rules: made from a decision, activated by a second person, and suspended or revoked by any one reviewer.

A rule is a definition: it is decided on the definitions, and is in force on a partition that has adopted it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from schemas.actor import Actor
from schemas.authority import refusal_for_another
from schemas.canonical import MalformedJson, parse_strict
from schemas.commands import ActivateRule, MakeRule, RevokeRule, SuspendRule
from schemas.events.executions import CommandRefused
from schemas.events.rules import RuleActivated, RuleMade, RuleRevoked, RuleSuspended
from schemas.message import Message
from schemas.principals import TenantPeople
from schemas.refusals import Refusal
from schemas.standing_rule import RuleRefused, StandingRuleDocument, standing_rule_from_text
from services.domain.authority.backing import made_by, number_behind
from services.domain.authority.vote_counting import REVIEWERS
from services.domain.memory.predicates import fixed_values

RuleCommand = MakeRule | ActivateRule | SuspendRule | RevokeRule
RuleEvent = RuleMade | RuleActivated | RuleSuspended | RuleRevoked
Status = Literal["proposed", "active", "suspended", "revoked", "refused"]
Place = tuple[str, str, str, str]  # tenant, project, agent and tool

# A judged call examines every active rule of its agent and tool.
# A decision against a call contradicts every rule that covers it, and may also end 200 open calls: 50 more events of
# 1,000 bytes still fit into it (tests/domain/test_quota.py).
ACTIVE_MAX = 50


class StandingRule(Struct, frozen=True):
    """The state of one rule.

    `heeded` are the contradictions for which it was suspended; `activators` activated it since its last suspension.
    """

    tenant: str
    document: StandingRuleDocument
    status: Status
    heeded: frozenset[str] = frozenset()
    activators: tuple[str, ...] = ()

    @property
    def rule_id(self) -> str:
        """The rule's id."""
        return self.document.rule_id

    def heeds(self, contradiction: str) -> bool:
        """True if a contradiction has had its effect: the rule was suspended for it, or can never be active again."""
        return self.status in ("revoked", "refused") or contradiction in self.heeded


def never(rule: StandingRule) -> bool:
    """Treats no active rule as suspended; the default for `rests`."""
    return False


@dataclass(frozen=True, slots=True)
class ApprovedValues(Mapping[str, tuple[Any, ...]]):
    """By argument, the values that rules list one by one; computed only when a policy reads them."""

    rules: tuple[StandingRule, ...]

    def __getitem__(self, argument: str) -> tuple[Any, ...]:
        return tuple(
            value for rule in self.rules for value in fixed_values(rule.document.arguments.get(argument))
        )

    def __iter__(self) -> Iterator[str]:
        return iter({name for rule in self.rules for name in rule.document.arguments})

    def __len__(self) -> int:
        return len(set(self))


class StandingRules(Struct, frozen=True):
    """Every rule that was made, by tenant and id; and the active ones, by what they are about."""

    by_id: Map[tuple[str, str], StandingRule] = Map()
    by_place: Map[Place, tuple[str, ...]] = Map()

    def find(self, tenant: str, rule_id: str) -> StandingRule | None:
        """A rule, whatever its status."""
        return self.by_id.get((tenant, rule_id))

    def active(self, tenant: str, project: str, agent: str, tool: str) -> tuple[StandingRule, ...]:
        """The rules that are active for an agent's calls of a tool, in the order of their ids."""
        names = self.by_place.get((tenant, project, agent, tool), ())
        return tuple(self.by_id[tenant, name] for name in names)

    def with_event(self, tenant: str, event: RuleEvent) -> "StandingRules":
        """The rules after an event.

        Raises:
            RuleRefused: the event holds a document that cannot be read.
        """
        if isinstance(event, RuleMade):
            document = standing_rule_from_text(event.document)
            return self._with(StandingRule(tenant, document, event.status))
        rule = self.by_id.get((tenant, event.rule_id))
        if rule is None:
            return self
        if isinstance(event, RuleSuspended):
            heeded = rule.heeded | {contradiction_in(event.evidence)} - {""}
            return self._with(replace(rule, status="suspended", heeded=heeded, activators=()))
        if isinstance(event, RuleActivated):
            return self._with(replace(rule, status="active", activators=(event.by,)))
        return self._with(replace(rule, status="revoked"))

    def without(self, tenant: str, rule_id: str) -> "StandingRules":
        """The rules after an event about one of them that cannot be read: that rule can no longer be used."""
        rule = self.by_id.get((tenant, rule_id))
        return self if rule is None else self._with(replace(rule, status="refused"))

    def _with(self, rule: StandingRule) -> "StandingRules":
        document = rule.document
        place = (rule.tenant, document.project, document.agent, document.tool)
        names = {*self.by_place.get(place, ())} - {rule.rule_id}
        if rule.status == "active":
            names.add(rule.rule_id)
        by_place = self.by_place.set(place, tuple(sorted(names)))
        return StandingRules(self.by_id.set((rule.tenant, rule.rule_id), rule), by_place)


def decide(rules: StandingRules, people: TenantPeople, command: RuleCommand, actor: Actor) -> list[Message]:
    """The events of a command about a standing rule. The actor has the roles in force."""
    if isinstance(command, MakeRule):
        return [_made(rules, command, actor)]
    rule = rules.find(actor.tenant, command.rule_id)
    # A decider is trusted by the key of its signature (`schemas.envelope`), and can only suspend a rule.
    is_system = actor.roles == ("system",) and isinstance(command, SuspendRule)
    if rule is None or rule.document.project != actor.project:
        return [_refused(command, actor, Refusal.NOT_FOUND, "no such standing rule")]
    problem = None if is_system else _authority_problem(rule, people, command, actor)
    problem = problem or _status_problem(rule, command, is_system) or _crowd_problem(rules, rule, command)
    problem = problem or _too_few_problem(rule, people, command, actor)
    if problem is not None:
        return [_refused(command, actor, *problem)]
    return [_event(command, actor)]


def contradiction_in(evidence: str) -> str:
    """The id of the contradiction in a suspension's evidence; empty if a person suspended the rule."""
    value: Any = parse_strict(evidence)
    found = value.get("contradiction_id") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def _made(rules: StandingRules, command: MakeRule, actor: Actor) -> Message:
    if rules.find(actor.tenant, command.rule_id) is not None:
        return _refused(command, actor, Refusal.DUPLICATE, "this rule was already made")
    try:
        document = standing_rule_from_text(command.document)
    except RuleRefused as error:
        return _refused(command, actor, Refusal.INVALID, str(error))
    if document.rule_id != command.rule_id or document.project != actor.project:
        return _refused(command, actor, Refusal.INVALID, "the document belongs to another rule or project")
    status: Literal["proposed", "active", "refused"] = "proposed" if document.four_eyes else "active"
    reason = ""
    if len(rules.active(actor.tenant, document.project, document.agent, document.tool)) >= ACTIVE_MAX:
        status, reason = "refused", f"{ACTIVE_MAX} rules are active for this agent and tool: revoke some"
    return RuleMade(
        rule_id=command.rule_id, status=status, reason=reason, document=command.document, by=document.made_by
    )


def _authority_problem(
    rule: StandingRule, people: TenantPeople, command: RuleCommand, actor: Actor
) -> tuple[Refusal, str] | None:
    document, person = rule.document, people.name_of(actor.subject)
    if actor.agent is not None or people.is_disabled(actor.subject):
        return Refusal.NOT_AUTHORISED, "standing rules are for people to decide"
    if (for_another := refusal_for_another(actor, people)) is not None:
        return for_another
    if person in map(people.meant_by, document.terms.excluded):
        return Refusal.NOT_AUTHORISED, "the policy excludes you from deciding what the rule decides"
    if not isinstance(command, ActivateRule):
        named = actor.has(*REVIEWERS) or _may_decide(document, people, actor)
        return None if named else (Refusal.FORBIDDEN_ROLE, "needs the role reviewer")
    if person in _own(document, people):
        return (
            Refusal.OWN_REQUEST,
            "a rule must be activated by a person other than its makers and requesters",
        )
    if not _may_decide(document, people, actor):
        return Refusal.FORBIDDEN_ROLE, "only a person who could decide the held call can activate its rule"
    return None


def _own(document: StandingRuleDocument, people: TenantPeople) -> frozenset[str]:
    """The people who cannot activate a rule: with four eyes makers and requesters; else requesters, if excluded."""
    asked = document.requesters if document.four_eyes or document.terms.exclude_requester else ()
    # Requesters are already people's names; they are accounts' if no principal was published at that time.
    own = (*made_by(document), *asked) if document.four_eyes else asked
    return people.names_of(own) | frozenset(map(people.meant_by, own))


def _may_decide(document: StandingRuleDocument, people: TenantPeople, actor: Actor) -> bool:
    terms = document.terms
    if people.is_among(actor.subject, terms.reviewers):
        return True
    if terms.roles or terms.reviewers:
        return bool(set(terms.roles) & set(actor.roles))
    return actor.has(*REVIEWERS)


def _status_problem(rule: StandingRule, command: RuleCommand, is_system: bool) -> tuple[Refusal, str] | None:
    status = rule.status
    if status in ("revoked", "refused"):
        again = isinstance(command, RevokeRule) and status == "revoked"
        return (Refusal.DUPLICATE if again else Refusal.NOT_OPEN), f"the rule is {status}"
    if isinstance(command, ActivateRule) and status == "active":
        return Refusal.DUPLICATE, "the rule is active"
    # A decider records every contradiction: the partition on which it happened waits to see its own.
    if isinstance(command, SuspendRule) and status == "suspended" and not is_system:
        return Refusal.DUPLICATE, "the rule is suspended"
    if isinstance(command, SuspendRule) and _unreadable(command.evidence):
        return Refusal.MALFORMED, "evidence is a JSON object"
    return None


def _crowd_problem(
    rules: StandingRules, rule: StandingRule, command: RuleCommand
) -> tuple[Refusal, str] | None:
    document = rule.document
    active = rules.active(rule.tenant, document.project, document.agent, document.tool)
    if not isinstance(command, ActivateRule) or len(active) < ACTIVE_MAX:
        return None
    return Refusal.QUOTA, f"{ACTIVE_MAX} rules are active for this agent and tool: revoke some"


def _too_few_problem(
    rule: StandingRule, people: TenantPeople, command: RuleCommand, actor: Actor
) -> tuple[Refusal, str] | None:
    # Needed only for rules of an earlier version, of whose makers only the last is recorded.
    quorum = rule.document.terms.quorum
    if (
        not isinstance(command, ActivateRule)
        or number_behind(rule.document, (actor.subject,), people) >= quorum
    ):
        return None
    detail = f"fewer people would approve this rule than the {quorum} that its hold required"
    return Refusal.INVALID, f"{detail}: revoke it, and have all approvers of such a call request it"


def _unreadable(evidence: str) -> bool:
    try:
        return not isinstance(parse_strict(evidence), dict)
    except MalformedJson:
        return True


def _event(command: ActivateRule | SuspendRule | RevokeRule, actor: Actor) -> Message:
    if isinstance(command, ActivateRule):
        return RuleActivated(rule_id=command.rule_id, reason=command.reason, by=actor.subject)
    if isinstance(command, SuspendRule):
        return RuleSuspended(
            rule_id=command.rule_id, reason=command.reason, evidence=command.evidence, by=actor.subject
        )
    return RuleRevoked(rule_id=command.rule_id, reason=command.reason, by=actor.subject)


def _refused(command: RuleCommand, actor: Actor, code: Refusal, detail: str) -> CommandRefused:
    return CommandRefused(
        code=code, command=type(command).__name__, subject_id=command.rule_id, detail=detail, by=actor.subject
    )
