"""Two sides' figures: medians, spreads, and ratios round by round."""

from __future__ import annotations

from ops.bench.against.pair import Pair, Spread
from ops.bench.against.scenarios import Named

RATE = Named("calls", "calls/s")


def test_ratio_is_of_the_rounds_and_not_of_the_medians() -> None:
    pair = Pair("rate", RATE, (100.0, 300.0, 400.0), (50.0, 100.0, 400.0))
    assert pair.ratios == (2.0, 3.0, 1.0)
    assert Spread.of(pair.ratios) == Spread(2.0, 1.0, 3.0)
    assert Spread.of(pair.ours) == Spread(300.0, 100.0, 400.0)


def test_figure_that_one_side_lacks_has_no_ratio() -> None:
    pair = Pair("cpu-notifier", RATE, (1.0, 2.0), ())
    assert pair.ratios == ()
    told = pair.as_json()
    assert told["theirs"] is None
    assert told["ratio"] is None
    assert told["ours"] == {"median": 1.5, "min": 1.0, "max": 2.0, "rounds": [1.0, 2.0]}


def test_nothing_has_no_ratio_to_something() -> None:
    assert Pair("idle", RATE, (1.0, 2.0), (1.0, 0.0)).ratios == ()
