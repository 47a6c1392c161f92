"""States, statuses and kinds: code, doors, the comments on columns and the pages name the same words."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, get_args

import pytest

from gateway.resources import CallStatus, ExecutionState, Grant, HoldStatus, StandingRule
from projections.folds.definitions import KINDS
from projections.folds.states import CLOSED, LIVE
from projections.store.comments import column_comment
from schemas.commands import Decision
from schemas.events.calls import DenialCause, Effect
from schemas.events.holds import HoldCause, HoldOpened, OnReject, OnTimeout
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
    ("tool_calls", "effect"): get_args(Effect),
    ("tool_calls", "released_by"): get_args(Grant.model_fields["released_by"].annotation),
    ("tool_calls", "denied_because"): get_args(DenialCause),
    ("votes", "decision"): get_args(Decision),
    ("edits", "op"): {"add", "remove", "replace"},
    ("evidence", "kind"): {
        "success",
        "failure",
        "unknown",
        "approval",
        "edit",
        "rejection",
        "withdrawal",
        "revocation",
        "impact",
    },
    ("standing_rules", "status"): get_args(StandingRule.model_fields["status"].annotation),
}
# Of these the page on the views alone names the words; the comment says what they are about.
ON_THE_PAGE: dict[tuple[str, str], Collection[str]] = {
    ("holds", "on_timeout"): get_args(OnTimeout),
    ("holds", "on_reject"): get_args(OnReject),
}
WORD = re.compile(r"[a-z][a-z_-]*")


def words(text: str) -> set[str]:
    return set(WORD.findall(text)) - {"or"}


@pytest.mark.parametrize("column", COLUMNS, ids=".".join)
def test_words_of_a_column_are_those_of_its_comment(column: Any) -> None:
    comment = column_comment(*column)
    assert words(comment.rpartition(":")[2].partition(";")[0]) == set(COLUMNS[column])


@pytest.mark.parametrize("column", COLUMNS | ON_THE_PAGE, ids=".".join)
def test_words_of_a_column_are_those_of_the_page_on_the_views(column: Any) -> None:
    table, name = column
    page = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^### {table} .*?(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    told = re.search(rf"`{name}`(?:: | is | \()([^.;`()]*?)(?:[.;`()]|, and the|\n\*|$)", section)
    assert told, f"docs/views.md does not say what `{name}` of {table} can be"
    assert words(told[1]) == set((COLUMNS | ON_THE_PAGE)[column])


def test_states_of_executions_are_those_of_the_doors_without_what_is_reserved() -> None:
    assert set(get_args(ExecutionState)) - (CLOSED | LIVE) == RESERVED
    assert set(get_args(ExecutionState)) >= (CLOSED | LIVE)
    assert "`waiting_correction`, which is reserved" in (ROOT / "docs" / "views.md").read_text("utf-8")
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^Execution state shown: (.*?)(?=\n\n)", page, re.DOTALL | re.MULTILINE)
    assert [state for state in get_args(ExecutionState) if state not in shown] == []
    assert "`waiting_correction`: it is reserved" in shown
