"""Figures: ratios, targets, percentiles."""

from __future__ import annotations

import pytest

from ops.bench.result import Figure, Result, Target, percentile


def test_figure_with_a_floor_is_judged_by_its_ratio() -> None:
    figure = Figure("gate", 7.0, "ms", floor=4.0, target=Target(2))
    assert figure.ratio == 1.75
    assert figure.is_ok is True
    assert Figure("gate", 9.0, "ms", floor=4.0, target=Target(2)).is_ok is False


def test_figure_without_a_floor_is_judged_by_itself() -> None:
    assert Figure("rate", 31_000, "events/s", target=Target(30_000, at_most=False)).is_ok is True
    assert Figure("rate", 29_000, "events/s", target=Target(30_000, at_most=False)).is_ok is False


def test_result_with_one_figure_short_is_not_ok() -> None:
    told, short = Figure("told", 1.0, "s"), Figure("short", 3.0, "s", target=Target(2))
    assert Result("one", (told,)).is_ok
    assert not Result("two", (told, short)).is_ok
    assert told.as_json()["ok"] is None
    assert short.as_json()["target"] == {"limit": 2, "at_most": True}


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (100, 100), (0, 1)])
def test_percentile_is_the_nearest_rank(percent: float, expected: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], percent) == expected
