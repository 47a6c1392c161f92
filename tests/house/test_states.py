"""States, statuses and kinds: code, doors, the comments on columns and the pages name the same words."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, get_args

import pytest

from gateway.resources import CallStatus, ExecutionState, HoldStatus, StandingRule
from projections.folds.definitions import KINDS
from projections.folds.executions import CLOSED, LIVE
from projections.store.comments import column_comment
from schemas.events.holds import HoldCause, HoldOpened
from tests.house.sources import ROOT

# In the doors' schemas, for a wait that no event opens yet.
RESERVED = {"waiting_correction"}
COLUMNS: dict[tuple[str, str], Collection[str]] = {
    ("executions", "state"): CLOSED | LIVE,
    ("tool_calls", "status"): get_args(CallStatus),
    ("holds", "status"): get_args(HoldStatus),
    ("holds", "kind"): get_args(HoldOpened.model_fields["kind"].annotation),
    ("holds", "cause"): get_args(HoldCause),
    ("definitions", "kind"): KINDS.values(),
    ("standing_rules", "status"): get_args(StandingRule.model_fields["status"].annotation),
}
WORD = re.compile(r"[a-z][a-z_-]*")


def words(text: str) -> set[str]:
    return set(WORD.findall(text)) - {"or"}


@pytest.mark.parametrize("column", COLUMNS, ids=".".join)
def test_words_of_a_column_are_those_of_its_comment_and_of_the_page_on_the_views(column: Any) -> None:
    table, name = column
    expected = set(COLUMNS[column])
    comment = column_comment(table, name)
    assert words(comment.rpartition(":")[2]) == expected
    page = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^### {table} .*?(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    told = re.search(rf"`{name}`(?::| is) ([^.;`(]*?)(?:[.;`(]|, and the|\n\*|$)", section)
    assert told, f"docs/views.md does not say what `{name}` of {table} can be"
    assert words(told[1]) == expected


def test_states_of_executions_are_those_of_the_doors_without_what_is_reserved() -> None:
    assert set(get_args(ExecutionState)) - (CLOSED | LIVE) == RESERVED
    assert set(get_args(ExecutionState)) >= (CLOSED | LIVE)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^Execution state shown: (.*?)(?=\n\n)", page, re.DOTALL | re.MULTILINE)
    assert [state for state in get_args(ExecutionState) if state not in shown] == []
    assert "`waiting_correction`: it is reserved" in shown
