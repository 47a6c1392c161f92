"""The rows of the star: a patch for each edit from what the agent proposed, and a row for each rule that is cited."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.folds.edits import patch_of
from projections.folds.effects import Before, New
from projections.folds.events import EFFECTS
from projections.folds.star import Cited, cited
from projections.queries.history import fold_all
from projections.tables.columns import Table
from projections.tables.star import EDIT_PATCHES, RULE_VERDICTS
from schemas.canonical import canonical
from schemas.events.calls import PolicyVerdictIssued
from schemas.record import Event
from tests.domain.steps import TESSA, ask_two, decided, held, proposed, started
from tests.domain.world import World, the

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "a/b~c"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab/~"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def added(world: World, table: Table) -> list[Any]:
    """The rows that the world's events add to a table, in order."""
    found: list[Any] = []
    for number, event in enumerate(world.events):
        found += [one.row for one in _added(world.events[:number], event) if one.table is table]
    return found


def _added(earlier: list[Event], event: Event) -> list[New]:
    make = EFFECTS[type(event.body)].rows
    if make is None:
        return []
    state = fold_all(earlier)
    hold = state.holds.get(getattr(event.body, "hold_id", ""))
    return list(make(event.body, event, Before(state.execution, state.calls.get("c"), hold)))


def test_patch_of_each_edit_is_from_what_the_agent_proposed() -> None:
    world = started()
    ask_two(world)
    edited = decided(world, held(world), "edit", edited_arguments='{"amount":4,"to":"x"}', feedback="less")
    decided(world, the(edited, "HoldOpened"), "edit", TESSA, edited_arguments='{"amount":3}')

    first, second = added(world, EDIT_PATCHES)

    assert [row["proposed_arguments"] for row in (first, second)] == ['{"amount":5}'] * 2
    assert (first["subject"], first["revision"], first["operations"], first["feedback"]) == (
        "rita",
        2,
        2,
        "less",
    )
    assert (second["subject"], second["revision"]) == ("tessa", 3)
    assert json.loads(second["patch"]) == [{"op": "replace", "path": "/amount", "value": 3}]
    for row in (first, second):
        made = jsonpatch.JsonPatch.from_string(row["patch"]).apply(json.loads(row["proposed_arguments"]))
        assert made == json.loads(row["arguments"])


def test_other_decisions_have_no_patch() -> None:
    world = started()
    decided(world, held(world), "approve")
    assert added(world, EDIT_PATCHES) == []


@given(OBJECTS, OBJECTS)
def test_any_patch_makes_one_of_the_other_by_the_rules_of_a_library_that_is_not_ours(
    before: Any, after: Any
) -> None:
    assert canonical(jsonpatch.apply_patch(before, patch_of(before, after))) == canonical(after)


def test_each_rule_of_a_verdict_is_a_row() -> None:
    world = started()
    proposed(world, "pay")
    (verdict,) = [event.body for event in world.events if isinstance(event.body, PolicyVerdictIssued)]

    rows = added(world, RULE_VERDICTS)

    assert [row["rule"] for row in rows] == list(verdict.rules) != []
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert {(row["effect"], row["call_id"], row["revision"], row["agent"]) for row in rows} == {
        (verdict.effect, "c", 1, "bot")
    }


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("payments@3/large", Cited("policy", "payments", 3, "large")),
        ("main/payments@12/a.b", Cited("policy", "main/payments", 12, "a.b")),
        ("rule:3f-1", Cited("standing", None, None, "3f-1")),
        ("execution:d-1", Cited("execution", None, None, "d-1")),
        ("no version", Cited("policy", None, None, "no version")),
        ("odd@x/y", Cited("policy", None, None, "odd@x/y")),
    ],
)
def test_citation_is_taken_apart(rule: str, parts: Cited) -> None:
    assert cited(rule) == parts
