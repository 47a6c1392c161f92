"""What is derived from the log is believed while it reaches where every partition ended 15 seconds ago."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitals.log_reach import BEHIND_MAX_S, Ends, LogReach

JUST = 0.001


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_is_reached_before_the_first_look(clock: Clock) -> None:
    reach = LogReach(clock)
    assert (reach.is_seen(), reach.is_reached({})) == (False, False)


def test_what_the_first_look_finds_must_be_reached_at_once(clock: Clock) -> None:
    reach = LogReach(clock)
    reach.look({0: 10, 1: 0})
    assert not reach.is_reached({0: 8})
    assert reach.is_reached({0: 9})


def test_a_partition_that_is_first_seen_later_must_be_reached_at_once(clock: Clock) -> None:
    reach = LogReach(clock)
    reach.look({0: 10})
    clock.now_s += 1
    reach.look({0: 10, 1: 5})
    assert not reach.is_reached({0: 9})
    assert reach.partitions == {0, 1}


def test_one_partition_that_is_not_seen_for_15_seconds_is_enough_for_disbelief(clock: Clock) -> None:
    reach = LogReach(clock)
    reach.look({0: 10, 1: 5})
    clock.now_s += BEHIND_MAX_S
    reach.look({0: 10})
    assert reach.is_reached({0: 9, 1: 4})
    clock.now_s += JUST
    reach.look({0: 10})
    assert not reach.is_reached({0: 9, 1: 4})

    # It has grown since nobody knows when; the other one is held to its end of 15 seconds ago, as before.
    reach.look({0: 11, 1: 6})
    assert not reach.is_reached({0: 9, 1: 4})
    assert reach.is_reached({0: 9, 1: 5})


STEPS = st.lists(
    st.tuples(st.sampled_from((0.5, 3.0, 14.0, 16.0)), st.integers(0, 4), st.booleans()), max_size=20
)


@given(STEPS)
def test_what_ended_15_seconds_ago_is_required_by_definition(steps: list[tuple[float, int, bool]]) -> None:
    """Compared with the definition, which keeps every look."""
    clock = Clock()
    reach = LogReach(clock)
    looks: list[tuple[float, Ends]] = []
    end = 0
    for passed_s, grown, is_looked in steps:
        clock.now_s += passed_s
        end += grown
        if is_looked:
            reach.look({0: end})
            looks.append((clock.now_s, {0: end}))
        for through in range(-1, end + 1):
            assert reach.is_reached({0: through}) == _is_reached(looks, clock.now_s, through)


def _is_reached(looks: list[tuple[float, Ends]], now_s: float, through: int) -> bool:
    if not looks or looks[-1][0] < now_s - BEHIND_MAX_S:
        return False
    required = 0
    before_s = float("-inf")
    for at_s, ends in looks:
        # Old at the last look, or the first one after nobody had looked for long.
        if at_s <= looks[-1][0] - BEHIND_MAX_S or before_s < at_s - BEHIND_MAX_S:
            required = max(required, ends[0])
        before_s = at_s
    return through >= required - 1
