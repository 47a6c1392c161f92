"""Requirements: how they are written, and what they are asked of."""

from __future__ import annotations

import pytest

from ops.bench.against.pair import Pair
from ops.bench.against.required import parsed
from ops.bench.against.scenarios import Named
from ops.errors import UsageError

KEYS = ("gate-rate", "idle-cpu")
PAIR = Pair("gate-rate", Named("calls", "calls/s"), (300.0, 500.0, 400.0), (100.0, 200.0, 200.0))


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("gate-rate>=2.5x", True),
        ("gate-rate >= 2.6x", False),
        ("gate-rate<=2.5x", True),
        ("gate-rate>=400", True),
        ("gate-rate>=401", False),
        ("gate-rate<=399.9", False),
    ],
)
def test_requirement_is_of_the_ratio_with_an_x_and_of_the_working_tree_without(
    text: str, is_met: bool
) -> None:
    assert parsed(text, KEYS).is_met(PAIR) is is_met


def test_what_was_not_measured_meets_nothing() -> None:
    missing = Pair("gate-rate", PAIR.named, (), (1.0,))
    assert not parsed("gate-rate>=0", KEYS).is_met(missing)
    assert not parsed("gate-rate>=0x", KEYS).is_met(missing)


@pytest.mark.parametrize("text", ["gate-rate", "gate-rate=2", "gate-rate>=fast", ">=2", "gate-rate>=2y"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write KEY>=X"):
        parsed(text, KEYS)


def test_unknown_figure_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no figure gate-speed: choose one of gate-rate, idle-cpu"):
        parsed("gate-speed>=2", KEYS)
