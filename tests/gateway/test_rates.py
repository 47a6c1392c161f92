from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.shares.rates import ROUNDING_S, SWEEP_AT, Buckets


@pytest.mark.parametrize("per_s", [1, 5, 500])
def test_take_a_burst_at_once_then_the_sustained_rate(per_s: int) -> None:
    buckets = Buckets(per_s)
    assert [buckets.wait_s("a", 10.0) for _ in range(per_s)] == [0.0] * per_s
    wait_s = buckets.wait_s("a", 10.0)
    assert wait_s == pytest.approx(1 / per_s, rel=1e-3)
    assert buckets.wait_s("a", 10.0) == wait_s
    assert buckets.wait_s("a", 10.0 + wait_s) == 0.0
    assert buckets.wait_s("a", 10.0 + wait_s) > 0.0


def test_take_of_a_socket_that_floods_passes_a_burst_and_then_the_rate() -> None:
    messages = Buckets(10.0)
    assert sum(messages.wait_s("socket", 0.0) == 0.0 for _ in range(50)) == 10
    assert sum(messages.wait_s("socket", 1.0) == 0.0 for _ in range(50)) == 10
    assert sum(messages.wait_s("socket", 1.55) == 0.0 for _ in range(50)) == 5


def test_take_after_a_pause_finds_the_bucket_full_and_no_fuller() -> None:
    buckets = Buckets(5)
    for now in (0.0, 1_000.0):
        assert sum(buckets.wait_s("a", now) == 0.0 for _ in range(20)) == 5


def test_take_by_one_caller_leaves_another_alone() -> None:
    buckets = Buckets(5)
    while buckets.wait_s("a", 1.0) == 0.0:
        pass
    assert buckets.wait_s("b", 1.0) == 0.0


@given(
    st.integers(1, 50),
    st.lists(st.floats(0, 0.5, allow_nan=False), min_size=1, max_size=300),
)
def test_take_at_any_times_never_passes_more_than_the_burst_and_the_rate(
    per_s: int, pauses: list[float]
) -> None:
    buckets = Buckets(per_s)
    now, taken = 0.0, []
    for pause in pauses:
        now += pause
        wait_s = buckets.wait_s("a", now)
        if wait_s == 0.0:
            taken.append(now)
        else:
            assert 0 < wait_s <= 1 / per_s + ROUNDING_S
    for first, since in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= per_s * (1 + taken[last] - since + ROUNDING_S) + 1e-3


def test_callers_whose_buckets_are_full_again_are_forgotten() -> None:
    buckets = Buckets(5)
    for number in range(10 * SWEEP_AT):
        buckets.wait_s(number, number * 0.001)
    assert len(buckets) <= SWEEP_AT


def test_callers_who_ask_right_now_are_all_remembered() -> None:
    buckets = Buckets(1)
    for number in range(3 * SWEEP_AT):
        buckets.wait_s(number, 1.0)
    assert all(buckets.wait_s(number, 1.0) > 0 for number in range(3 * SWEEP_AT))
