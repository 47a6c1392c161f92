"""The effects of an execution's events about standing rules; the rules themselves are published (`definitions`)."""

from projections.folds.effects import Act, Before, Effect
from projections.folds.rows import json_text
from schemas.events import rules as r


def _told_asking(body: r.RuleAsked, before: Before) -> Act:
    return Act(body.by, "ask_rule", after=body.document)


def _told_contradiction(body: r.RuleContradicted, before: Before) -> Act:
    after = json_text({"rule_id": body.rule_id, "decision_id": body.decision_id or None})
    return Act(body.by, "contradict_rule", after=after)


EFFECTS = (
    Effect(r.RuleAsked, audit=_told_asking),
    Effect(r.RuleContradicted, audit=_told_contradiction),
)
