"""The limit on what callers have open at once."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from gateway.problems import Problem
from gateway.shares.open_limit import OpenLimit
from schemas.refusals import Refusal


def take_all(limit: OpenLimit, caller: str, taken: ExitStack) -> int:
    """Open as many as the caller gets, and return their number."""

    def take_until_refused() -> None:
        while True:
            taken.enter_context(limit.of(caller))

    before = len(limit)
    with pytest.raises(Problem) as refused:
        take_until_refused()
    assert refused.value.code is Refusal.QUOTA
    return len(limit) - before


def test_a_caller_gets_its_maximum_and_another_its_own() -> None:
    limit = OpenLimit(3, "too many")
    with ExitStack() as taken:
        assert [take_all(limit, caller, taken) for caller in "aba"] == [3, 3, 0]
    assert len(limit) == 0


def test_each_that_comes_leaves_as_much_free_as_it_takes() -> None:
    limit = OpenLimit(1_600, "too many", 1_600)
    with ExitStack() as taken:
        assert [take_all(limit, caller, taken) for caller in "abcdef"] == [800, 400, 200, 100, 50, 25]
    assert len(limit) == 0


@pytest.mark.parametrize("callers", [1, 2, 3, 7, 15])
def test_callers_that_come_together_get_the_same(callers: int) -> None:
    limit, total = OpenLimit(1_600, "too many", 1_600), 1_600
    with ExitStack() as taken:
        got = [0] * callers
        for _ in range(total):
            for caller in range(callers):
                try:
                    taken.enter_context(limit.of(caller))
                    got[caller] += 1
                except Problem:
                    continue
        assert set(got) <= {total // (callers + 1), total // (callers + 1) + 1}


def test_a_maximum_of_each_holds_beside_that_of_all() -> None:
    limit = OpenLimit(64, "too many", 512)
    with ExitStack() as taken:
        assert take_all(limit, "flood", taken) == 64
        assert take_all(limit, "other", taken) == 64
