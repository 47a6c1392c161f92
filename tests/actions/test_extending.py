"""ExtendHold and HoldExtended: at the door, decided, in the views and in the audit."""

from __future__ import annotations

import json

import pytest

from gateway.problems import Problem
from projections.folds.audit import entry_of
from projections.folds.effects import Before
from projections.queries.history import fold_all
from schemas import commands as k
from schemas.limits import DEADLINE_MAX_S, EXTENSION_MAX_S
from tests.actions.handling import said
from tests.domain.steps import code, decided, held, refusal, started
from tests.domain.world import ANNA, RITA, names


@pytest.mark.parametrize("seconds", [0, EXTENSION_MAX_S + 1])
def test_door_takes_no_extension_that_the_decider_refuses(seconds: int) -> None:
    with pytest.raises(Problem, match="seconds"):
        said("extend", "h", seconds=seconds)


def test_door_takes_an_integer_as_json_schema_counts_them() -> None:
    (whole, other) = (said("extend", "h", seconds=seconds) for seconds in (407.0, 407))
    assert whole == other
    with pytest.raises(Problem, match="seconds"):
        said("extend", "h", seconds=407.5)


def test_extend_moves_the_deadline_within_bounds() -> None:
    world = started()
    hold = held(world)

    for seconds in (0, 8 * 24 * 60 * 60):
        assert code(world.ask(k.ExtendHold(hold_id=hold.hold_id, seconds=seconds), RITA)) == "invalid"
    world.ask(k.ExtendHold(hold_id=hold.hold_id, seconds=60), RITA)
    world.later(630)

    assert names(decided(world, hold, "approve")) == ["DecisionRecorded", "ToolCallReleased"]


def test_extend_again_and_again_moves_the_deadline_no_further_than_a_rule_may_set_one() -> None:
    world = started()
    hold = held(world)
    week = k.ExtendHold(hold_id=hold.hold_id, seconds=EXTENSION_MAX_S)
    for _ in range(DEADLINE_MAX_S // EXTENSION_MAX_S):
        assert names(world.ask(week, RITA)) == ["HoldExtended"]

    refused = world.ask(week, RITA)

    assert code(refused) == "invalid"
    assert refusal(refused).detail == f"a deadline is at most {DEADLINE_MAX_S} seconds from now"
    world.later(EXTENSION_MAX_S)
    assert names(world.ask(week, RITA)) == ["HoldExtended"]


def test_extend_names_what_is_wrong_with_the_command_before_that_the_hold_is_closed() -> None:
    world = started()
    hold = held(world)
    wrong, right = (k.ExtendHold(hold_id=hold.hold_id, seconds=seconds) for seconds in (0, 1))
    assert code(world.ask(wrong, RITA)) == "invalid"
    decided(world, hold, "approve")

    assert code(world.ask(wrong, RITA)) == "invalid"
    assert code(world.ask(wrong, ANNA)) == "forbidden_role"
    assert code(world.ask(right, RITA)) == "already_decided"


def test_extension_moves_the_deadline_of_the_hold_and_its_call_in_the_views() -> None:
    world = started()
    hold = held(world)
    world.ask(said("extend", hold.hold_id, seconds=60), RITA)

    state, moved = fold_all(world.events), (hold.deadline_at_ms or 0) + 60_000

    assert state.holds[hold.hold_id]["deadline_at_ms"] == moved
    assert state.calls[hold.call_id]["deadline_at_ms"] == moved


def test_audit_tells_of_an_extension_with_the_deadline_before_and_after() -> None:
    world = started()
    hold = held(world)
    before = fold_all(world.events)
    world.ask(said("extend", hold.hold_id, seconds=60), RITA)

    rows = Before(before.execution, before.calls[hold.call_id], before.holds[hold.hold_id])
    row = entry_of(world.events[-1], rows)

    assert row is not None
    assert (row["subject"], row["action"]) == (RITA.subject, "extend")
    assert json.loads(row["before"] or "") == {"deadline_at_ms": hold.deadline_at_ms}
    assert json.loads(row["after"] or "") == {"deadline_at_ms": (hold.deadline_at_ms or 0) + 60_000}
