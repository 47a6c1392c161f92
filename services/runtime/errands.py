"""What the executions of a partition want done elsewhere about standing rules, as the fold of their events."""

from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from schemas.canonical import canonical
from schemas.events.rules import ReservationSettled, RuleAsked, RuleContradicted
from schemas.ids import definition_key, derived_id, split_execution_key
from schemas.record import Event
from schemas.standing_rule import RULE_KIND
from services.domain.memory.coverage import contradiction_id, is_of_execution
from services.domain.memory.rule_uses import USED_UP
from services.domain.memory.standing_rules import StandingRule, StandingRules

RuleName = tuple[str, str]  # tenant and rule id


class Errand(Struct, frozen=True):
    """A rule to make, or to suspend. Its id is that of its command, so that a repeat is the same command."""

    errand_id: str
    kind: Literal["make", "suspend"]
    tenant: str
    project: str
    rule_id: str
    text: str

    @property
    def key(self) -> bytes:
        """The key of the rule among the definitions."""
        return definition_key(self.tenant, RULE_KIND, self.rule_id)

    def is_done(self, rules: StandingRules) -> bool:
        """Whether the definitions show that it was done, or cannot be any more."""
        rule = rules.find(self.tenant, self.rule_id)
        if rule is None:
            return False
        return self.kind == "make" or _heeds(rule, self.errand_id)


@dataclass(slots=True)
class Errands:
    """Every errand of a partition. Few are ever made: each is a person's decision.

    Attributes:
        every: by id, in the order of the log.
        contradicted: the contradictions of each rule that were said here; it rests here until it has heeded them.
        spent: rules whose last use is known to be taken.
        fresh: what was added since a carrier began to look; None before.
    """

    every: dict[str, Errand] = field(default_factory=dict)
    contradicted: dict[RuleName, set[str]] = field(default_factory=dict)
    spent: set[RuleName] = field(default_factory=set)
    fresh: list[Errand] | None = None

    def apply(self, event: Event) -> None:
        """Take an event of an execution."""
        body = event.body
        if isinstance(body, ReservationSettled):
            if not body.granted and body.detail == USED_UP:
                self.spent.add((event.meta.tenant, body.rule_id))
        elif isinstance(body, RuleAsked):
            tenant, project, _ = split_execution_key(event.key)
            errand_id = derived_id("make rule", tenant, body.rule_id)
            self.add(Errand(errand_id, "make", tenant, project, body.rule_id, body.document))
        elif isinstance(body, RuleContradicted) and not is_of_execution(body.rule_id):
            self.add(_suspension(event, body))

    def add(self, errand: Errand) -> None:
        """Take one errand, from an event or a snapshot."""
        self.every[errand.errand_id] = errand
        if errand.kind == "suspend":
            name = (errand.tenant, errand.rule_id)
            self.contradicted.setdefault(name, set()).add(errand.errand_id)
        if self.fresh is not None:
            self.fresh.append(errand)

    def rests(self, rule: StandingRule) -> bool:
        """Whether a rule was contradicted here, and the definitions in force do not show it yet."""
        said = self.contradicted.get((rule.tenant, rule.rule_id), ())
        return any(not _heeds(rule, name) for name in said)


def _heeds(rule: StandingRule, contradiction: str) -> bool:
    return rule.status in ("revoked", "refused") or contradiction in rule.heeded


def _suspension(event: Event, body: RuleContradicted) -> Errand:
    tenant, project, execution_id = split_execution_key(event.key)
    where = (tenant, project, execution_id)
    name = contradiction_id(where, body.rule_id, body.call_id, body.decision_id)
    evidence = {
        "contradiction_id": name,
        "execution_id": execution_id,
        **body.model_dump(exclude={"rule_id"}),
    }
    return Errand(name, "suspend", tenant, project, body.rule_id, canonical(evidence))
