"""What people made of a call's arguments, as a JSON Patch that a client can apply."""

from typing import Any

import pytest

from projections.folds.calls import call_json
from projections.folds.edits import EDITS_MAX, EDITS_SHOWN_BYTES, edits_json, patch_of
from projections.folds.effects import Before
from projections.folds.events import EFFECTS
from projections.folds.rows import json_text
from projections.queries.history import fold_all
from projections.tables.analytics import EDITS, EditRow
from schemas.canonical import canonical
from tests.domain.steps import TESSA, ask_two, decided, held, started
from tests.domain.world import the


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"a/b~c": None}, [{"op": "add", "path": "/a~1b~0c", "value": None}]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [{"op": "replace", "path": "/a/b/1", "value": 3}]),
        ({"a": [1]}, {"a": [1, 2]}, [{"op": "replace", "path": "/a", "value": [1, 2]}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ],
)
def test_patch_makes_one_of_the_other(before: Any, after: Any, patch: Any) -> None:
    assert patch_of(before, after) == patch


def test_call_tells_what_was_changed_by_whom_and_why() -> None:
    world = started()
    ask_two(world)
    edited = decided(world, held(world), "edit", edited_arguments='{"amount":4,"to":"x"}', feedback="less")
    decided(world, the(edited, "HoldOpened"), "edit", TESSA, edited_arguments='{"amount":3}')
    call = call_json(fold_all(world.events).calls["c"])
    first, second = call["edits"]
    assert (first["by"], first["feedback"], first["revision"]) == ("rita", "less", 2)
    assert first["patch"] == [
        {"op": "replace", "path": "/amount", "value": 4},
        {"op": "add", "path": "/to", "value": "x"},
    ]
    assert (second["by"], second["revision"]) == ("tessa", 3)
    assert second["patch"] == [
        {"op": "replace", "path": "/amount", "value": 3},
        {"op": "remove", "path": "/to"},
    ]


def test_of_many_edits_the_last_are_kept() -> None:
    world = started()
    ask_two(world)
    hold = held(world)
    for amount in range(100, 100 + EDITS_MAX + 5):
        by = TESSA if amount % 2 else None
        arguments = canonical({"amount": amount})
        said = decided(world, hold, "edit", *([by] if by else []), edited_arguments=arguments)
        hold = the(said, "HoldOpened")
    edits = call_json(fold_all(world.events).calls["c"])["edits"]
    assert len(edits) == EDITS_MAX
    assert edits[-1]["revision"] == EDITS_MAX + 6


def test_edit_of_large_arguments_is_shown_without_its_patch() -> None:
    world = started()
    ask_two(world)
    large = canonical({"amount": 3, "text": "é" * 100_000})
    edited = decided(world, held(world), "edit", edited_arguments='{"amount":4}')
    decided(world, the(edited, "HoldOpened"), "edit", TESSA, edited_arguments=large)
    row = fold_all(world.events).calls["c"]
    small, edit = call_json(row)["edits"]
    assert small["patch"]
    assert (edit["by"], edit["revision"], edit["patch"]) == ("tessa", 3, None)
    assert "é" in (row["edits"] or ""), "the views have it"


def test_of_edits_with_long_feedback_the_newest_are_shown() -> None:
    feedback = "é" * 16_384
    edits = [{"revision": number, "feedback": feedback, "patch": []} for number in range(2, 7)]
    shown = edits_json(json_text(edits))
    assert shown == edits[-1:]
    assert len(json_text(edits[-1]).encode()) * 2 > EDITS_SHOWN_BYTES
    assert edits_json(None) == []


def test_each_difference_is_a_row() -> None:
    world = started()
    hold = held(world)
    earlier = len(world.events)
    decided(world, hold, "edit", edited_arguments='{"amount":4,"to":"x"}', feedback="less")
    state, event = fold_all(world.events[:earlier]), world.events[earlier]
    made = EFFECTS[type(event.body)].rows
    assert made is not None

    before = Before(state.execution, state.calls["c"], state.holds[hold.hold_id])
    rows: list[EditRow] = [one.row for one in made(event.body, event, before) if one.table is EDITS]

    assert [(row["number"], row["op"], row["path"], row["before"], row["after"]) for row in rows] == [
        (1, "replace", "/amount", "5", "4"),
        (2, "add", "/to", None, '"x"'),
    ]
    assert {(row["revision"], row["subject"], row["feedback"]) for row in rows} == {(2, "rita", "less")}
