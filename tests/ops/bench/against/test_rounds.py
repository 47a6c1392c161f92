"""Turns: both sides in each round, neither always the first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ops.bench.against.revision import Tree
from ops.bench.against.rounds import compared
from ops.bench.against.scenarios import Named, Scenario
from ops.bench.against.side import Side
from ops.bench.site import Site

SITE = Site(*("",) * 4, "placet", 12, *("",) * 6)
NAMES = {"some-cpu": Named("CPU of all", "ms/call")}


def _side(name: str) -> Side:
    return Side(Tree(name, Path(), Path()), SITE, 1, {"kafka": 2})


def test_sides_take_turns_and_the_second_of_a_round_begins_the_next() -> None:
    turns: list[str] = []
    prepared: list[str] = []

    def measure(side: Side, is_quick: bool) -> Mapping[str, float]:
        assert is_quick
        turns.append(side.tree.name)
        return {"some-cpu-trust": 2.0, "some-cpu": float(len(turns))}

    def prepare(side: Side, _: bool) -> None:
        assert not turns
        prepared.append(side.tree.name)

    scenario = Scenario("some", "work", measure, NAMES, prepare)
    told: list[str] = []
    whole, part = compared(scenario, (_side("A"), _side("B")), 3, told.append, is_quick=True)
    assert turns == ["A", "B", "B", "A", "A", "B"]
    assert prepared == ["A", "B"]
    assert (whole.ours, whole.theirs) == ((1.0, 4.0, 5.0), (2.0, 3.0, 6.0))
    assert (part.key, part.named) == ("some-cpu-trust", Named("CPU of trust", "ms/call"))
    assert told[-1] == "round 3 of 3, B: work"


def test_part_that_one_side_has_alone_stays_in_the_table() -> None:
    def measure(side: Side, _: bool) -> Mapping[str, float]:
        return {"some-cpu": 1.0} | ({"some-cpu-new": 1.0} if side.tree.name == "A" else {})

    pairs = compared(
        Scenario("some", "", measure, NAMES), (_side("A"), _side("B")), 1, lambda _: None, is_quick=False
    )
    assert [(pair.key, pair.ours, pair.theirs) for pair in pairs] == [
        ("some-cpu", (1.0,), (1.0,)),
        ("some-cpu-new", (1.0,), ()),
    ]
