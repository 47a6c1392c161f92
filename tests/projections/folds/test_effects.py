"""Each type of event has its effect in one place, or is one of those that are known to change no row there."""

from __future__ import annotations

from collections import Counter

from projections.folds.events import (
    EFFECTS,
    calls,
    decisions,
    definitions,
    executions,
    holds,
    rules,
)
from projections.folds.events.definitions import PUBLISHED
from projections.tables.agents import COUNTERS, AgentRow
from schemas.events import EVENTS
from schemas.events import rules as r
from schemas.events.log import DefinitionsAdopted, WriterAlive, WriterClaimed

# What no effect is declared for: each is served from `events` as it is, and changes no other row of its subject.
NO_EFFECT = {
    # A call that waits for a use of a rule stays as it is, until its release or a hold.
    r.ReservationAsked,
    r.ReservationSettled,
    # Of an aggregate of their own: the one makes a row of `rule_uses` (`projections.folds.standing_rules`).
    r.RuleUseReserved,
    r.RuleUseRefused,
    # About the log itself; an adoption makes a row of `adoptions` (`projections.batching`).
    WriterClaimed,
    WriterAlive,
    DefinitionsAdopted,
}


def test_every_event_has_an_effect_or_is_known_to_have_none() -> None:
    declared = {*EFFECTS, *PUBLISHED}
    assert {kind.__name__ for kind in set(EVENTS) - declared} == {kind.__name__ for kind in NO_EFFECT}
    assert declared <= set(EVENTS)


def test_every_event_is_declared_once() -> None:
    modules = (executions, calls, holds, decisions, rules, definitions)
    named = Counter(one.of for module in modules for one in module.EFFECTS)
    assert [kind for kind, times in named.items() if times > 1] == []


def test_event_without_an_effect_changes_nothing() -> None:
    body = r.RuleUseRefused(
        rule_id="r", reservation_id="u", execution_id="e", call_id="c", revision=1, detail=""
    )
    effect = EFFECTS[type(body)]
    assert {getattr(effect, name) for name in effect.__slots__ if name != "of"} == {None, False}


def test_counters_are_the_columns_that_agents_are_counted_in() -> None:
    assert [name for name in AgentRow.__annotations__ if name in COUNTERS] == list(COUNTERS)
