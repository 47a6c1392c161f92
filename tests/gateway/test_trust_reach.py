"""Trust that a gateway shows and assesses by is complete exactly where a decider would believe it."""

from __future__ import annotations

import pytest

from gateway.live.trust import TrustParts
from schemas.trust import COUNT_FORM
from tests.gateway.test_trust import checkpoint, part, raw
from vitals.log_reach import BEHIND_MAX_S, LOOK_EVERY_S, LogReach

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


@pytest.fixture
def parts(clock: Clock) -> TrustParts:
    """All that was present is read: partition 0 is counted through 9, partition 1 through 4."""
    found = TrustParts(is_read=True, reach=LogReach(clock))
    found.take(raw(part(successes=1)))
    count(found, partition=0, through=9)
    count(found, partition=1, through=4)
    return found


def count(parts: TrustParts, partition: int, through: int) -> None:
    """The trust role counts a partition through an offset."""
    parts.take(raw(checkpoint(partition, through).model_copy(update={"form": COUNT_FORM})))


def shown(parts: TrustParts) -> tuple[bool, bool]:
    """Whether trust is shown as complete, and whether calls are assessed by it."""
    return parts.complete, parts.texts_of("acme", "main", "bot", ["pay"]) is not None


def look_on(parts: TrustParts, clock: Clock, ends: dict[int, int], for_s: float) -> None:
    """Look as the tail does, for a time in which the log ends there."""
    until_s = clock.now_s + for_s
    while clock.now_s < until_s:
        parts.reach.look(ends)
        clock.now_s += LOOK_EVERY_S


def test_complete_is_false_before_anybody_has_seen_where_the_log_ends(parts: TrustParts) -> None:
    assert shown(parts) == (False, False)
    parts.reach.look({0: 10, 1: 5})
    assert shown(parts) == (True, True)


def test_complete_is_false_until_the_log_of_the_first_look_is_reached(parts: TrustParts) -> None:
    parts.reach.look({0: 11, 1: 5})
    assert shown(parts) == (False, False)
    count(parts, partition=0, through=10)
    assert shown(parts) == (True, True)


def test_complete_of_a_frozen_trust_role_ends_with_what_was_written_15_seconds_ago(
    parts: TrustParts, clock: Clock
) -> None:
    look_on(parts, clock, {0: 10, 1: 5}, for_s=60.0)
    # A report of harm in the other partition.
    reported_s = clock.now_s
    look_on(parts, clock, {0: 10, 1: 6}, for_s=BEHIND_MAX_S - LOOK_EVERY_S)
    assert shown(parts) == (True, True)
    look_on(parts, clock, {0: 10, 1: 6}, for_s=2 * LOOK_EVERY_S)
    assert clock.now_s - reported_s <= BEHIND_MAX_S + 2 * LOOK_EVERY_S
    assert shown(parts) == (False, False)

    count(parts, partition=1, through=5)
    assert shown(parts) == (True, True)


def test_complete_while_nobody_sees_where_the_log_ends_is_false_after_15_seconds(
    parts: TrustParts, clock: Clock
) -> None:
    parts.reach.look({0: 10, 1: 5})
    clock.now_s += BEHIND_MAX_S
    assert shown(parts) == (True, True)
    clock.now_s += JUST
    assert shown(parts) == (False, False)

    # Nobody knows since when the log ends there: it must be reached at once.
    parts.reach.look({0: 10, 1: 6})
    assert shown(parts) == (False, False)
    count(parts, partition=1, through=5)
    assert shown(parts) == (True, True)


def test_complete_of_trust_that_is_counted_anew_is_false(parts: TrustParts) -> None:
    parts.reach.look({0: 10, 1: 5})
    parts.take(raw(checkpoint(), b""))
    assert shown(parts) == (False, False)
