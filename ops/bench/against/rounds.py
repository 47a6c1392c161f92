"""Rounds: both sides take their turn in each, and the one that began a round is the second of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ops.bench.against.pair import Pair
from ops.bench.against.scenarios import Scenario
from ops.bench.against.side import Side

Sides = tuple[Side, Side]
Tell = Callable[[str], None]


def compared(
    scenario: Scenario, sides: Sides, rounds: int, tell: Tell, *, is_quick: bool
) -> tuple[Pair, ...]:
    """Measure a scenario on both sides in turns (A B B A A B …); a pair of every figure.

    Args:
        scenario: what to measure.
        sides: the working tree's stack, and the other's.
        rounds: how many turns each side has.
        tell: hears how far it is.
        is_quick: whether small counts do.
    """
    if scenario.prepare is not None:
        for side in sides:
            tell(f"{side.tree.name}, making a log")
            scenario.prepare(side, is_quick)
    found: tuple[dict[str, list[float]], ...] = ({}, {})
    for number in range(rounds):
        for one in (0, 1) if number % 2 == 0 else (1, 0):
            tell(f"round {number + 1} of {rounds}, {sides[one].tree.name}: {scenario.told}")
            for key, value in scenario.measure(sides[one], is_quick).items():
                found[one].setdefault(key, []).append(value)
    return _pairs(scenario, *found)


def _pairs(
    scenario: Scenario, ours: dict[str, list[float]], theirs: dict[str, list[float]]
) -> tuple[Pair, ...]:
    return tuple(
        Pair(key, scenario.named(key), tuple(ours.get(key, ())), tuple(theirs.get(key, ())))
        for key in _in_order(tuple(scenario.figures), ours, theirs)
    )


def _in_order(*keys: Sequence[str] | dict[str, list[float]]) -> list[str]:
    """Each key once: the scenario's own first, then what a side adds."""
    return list(dict.fromkeys(key for of in keys for key in of))
