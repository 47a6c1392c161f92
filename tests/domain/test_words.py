"""Each word has its place: every command of a run one handler, every event of a run one fold."""

from __future__ import annotations

from typing import get_args

from schemas.commands import ExecutionCommand, ReserveRuleUse
from schemas.events import EVENTS
from schemas.events import calls as c
from schemas.events import executions as x
from schemas.events import holds as h
from schemas.events.definitions import DEFINITION_EVENTS
from schemas.events.log import LOG_EVENTS
from schemas.events.rules import RULE_EVENTS, RULE_USE_EVENTS, RuleAsked
from services.domain.execution import (
    calls,
    endings,
    evolve,
    execution,
    holds,
    impact,
    joining,
    opening,
    probes,
    requests,
    reservations,
    results,
    secrets,
    steering,
    turns,
    verdicts,
)

TABLES = [
    module.HANDLERS
    for module in (steering, calls, results, impact, holds, probes, requests, reservations, secrets, turns)
]
FOLDS = [
    module.FOLDS
    for module in (
        steering,
        calls,
        results,
        impact,
        verdicts,
        requests,
        opening,
        endings,
        holds,
        reservations,
        secrets,
        joining,
        turns,
    )
]
# What leaves a run as it was, or (the start) makes it.
NO_FOLD = {
    x.ExecutionStarted,
    x.CommandRefused,
    x.CommandAbandoned,
    h.DecisionRefused,
    # The decision that it follows from says the rest.
    h.HumanInputProvided,
    h.RollbackStarted,
    RuleAsked,
    c.ProbeEnded,
}
OF_OTHERS = {*DEFINITION_EVENTS, *RULE_EVENTS, *RULE_USE_EVENTS, *LOG_EVENTS}


def test_every_command_of_a_run_has_one_handler() -> None:
    # The uses of a rule are counted under the rule's own key.
    asked = set(get_args(ExecutionCommand)) - {ReserveRuleUse}
    assert asked == set(execution._HANDLERS)


def test_no_command_is_in_two_tables() -> None:
    named = [command for table in TABLES for command in table]
    assert len(named) == len(set(named))


def test_every_event_of_a_run_has_a_fold_or_is_known_to_have_none() -> None:
    assert {event.__name__ for event in set(EVENTS) - OF_OTHERS - set(evolve._FOLDS)} == {
        event.__name__ for event in NO_FOLD
    }


def test_no_event_is_folded_in_two_tables() -> None:
    named = [event for table in FOLDS for event in table]
    assert len(named) == len(set(named)) == len(evolve._FOLDS)
