"""Each word has its place: every command of a run one handler, every event of a run one fold."""

from __future__ import annotations

from typing import get_args

from schemas.commands import ExecutionCommand, ReserveRuleUse
from services.domain.execution import calls, execution, holds, requests, reservations, secrets

TABLES = [module.HANDLERS for module in (calls, holds, requests, reservations, secrets)]


def test_every_command_of_a_run_has_one_handler() -> None:
    # The uses of a rule are counted under the rule's own key.
    asked = set(get_args(ExecutionCommand)) - {ReserveRuleUse}
    assert asked == set(execution._HANDLERS)


def test_no_command_is_in_two_tables() -> None:
    named = [command for table in TABLES for command in table]
    assert len(named) == len(set(named))
