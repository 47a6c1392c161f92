"""The pending changes of standing rules that a partition's executions ask for, folded from their events."""

from dataclasses import dataclass, field

from schemas.canonical import canonical
from schemas.events.rules import ReservationSettled, RuleAsked, RuleContradicted
from schemas.ids import derived_id, split_execution_key
from schemas.record import Event
from services.domain.memory.coverage import contradiction_id, is_of_execution
from services.domain.memory.rule_uses import USED_UP
from services.domain.memory.standing_rules import StandingRule
from services.runtime.effects import NOTHING, Effects, RuleChange

RuleName = tuple[str, str]  # tenant and rule id

_TOLD_BY = frozenset({ReservationSettled, RuleAsked, RuleContradicted})


@dataclass(slots=True)
class PendingRuleChanges:
    """Every change of a partition. There are few: each comes from a person's decision.

    Attributes:
        every: by id, in the order of the log.
        contradicted: the contradictions of each rule on this partition; the rule rests here until it heeds them.
        spent: rules whose last use is known to be taken.
    """

    every: dict[str, RuleChange] = field(default_factory=dict)
    contradicted: dict[RuleName, set[str]] = field(default_factory=dict)
    spent: set[RuleName] = field(default_factory=set)

    def apply(self, event: Event) -> Effects:
        """Fold an event of an execution; returns the change that it causes."""
        body = event.body
        if type(body) not in _TOLD_BY:
            return NOTHING
        if isinstance(body, ReservationSettled):
            if not body.granted and body.detail == USED_UP:
                self.spent.add((event.meta.tenant, body.rule_id))
        elif isinstance(body, RuleAsked):
            tenant, project, _ = split_execution_key(event.key)
            change_id = derived_id("make rule", tenant, body.rule_id)
            return self.add(RuleChange(change_id, "make", tenant, project, body.rule_id, body.document))
        elif isinstance(body, RuleContradicted) and not is_of_execution(body.rule_id):
            return self.add(_suspension(event, body))
        return NOTHING

    def add(self, change: RuleChange) -> Effects:
        """Add one change, from an event or a snapshot."""
        self.every[change.change_id] = change
        if change.kind == "suspend":
            name = (change.tenant, change.rule_id)
            self.contradicted.setdefault(name, set()).add(change.change_id)
        return (change,)

    def rests(self, rule: StandingRule) -> bool:
        """True if a rule was contradicted here, and the definitions in force do not show that yet."""
        said = self.contradicted.get((rule.tenant, rule.rule_id), ())
        return any(not rule.heeds(name) for name in said)


def _suspension(event: Event, body: RuleContradicted) -> RuleChange:
    tenant, project, execution_id = split_execution_key(event.key)
    where = (tenant, project, execution_id)
    name = contradiction_id(where, body.rule_id, body.call_id, body.decision_id)
    evidence = {
        "contradiction_id": name,
        "execution_id": execution_id,
        **body.model_dump(exclude={"rule_id"}),
    }
    return RuleChange(name, "suspend", tenant, project, body.rule_id, canonical(evidence))
