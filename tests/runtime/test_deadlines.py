"""When a partition's deadlines are looked at, by clocks that are right, wrong, or not known yet."""

import asyncio
from dataclasses import dataclass, field

import pytest

from schemas.record import OutRecord
from services.runtime.clock import LogClock
from services.runtime.deadlines import IDLE_MS, NUDGES_AT_ONCE, RETRY_S, STALE_MAX, Deadlines
from services.runtime.executions_partition import Due

START_MS = 1_780_000_000_000
HOUR_MS = 3_600_000


@dataclass
class Timer:
    """Deadlines with clocks moved by hand, and the nudges that were sent."""

    local_ms: int = START_MS
    now_s: float = 0.0
    due: dict[bytes, Due] = field(default_factory=dict)
    sent: list[OutRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = LogClock(lambda: self.local_ms)
        self.deadlines = Deadlines(self.clock, self.due.get, lambda: self.now_s)

    def put(self, key: bytes, at_ms: int) -> None:
        self.due[key] = (at_ms, "subject")
        self.deadlines.put(key, self.due[key])

    def look(self) -> int:
        """Nudge what is due; how many nudges that makes."""

        async def send(record: OutRecord) -> int:
            self.sent.append(record)
            return len(self.sent)

        before = len(self.sent)
        asyncio.run(self.deadlines.nudge_due(send))
        return len(self.sent) - before


@pytest.fixture
def timer() -> Timer:
    return Timer()


def test_nudge_due_repeatedly_put_deadline_is_nudged_once(timer: Timer) -> None:
    timer.clock.observe(START_MS)
    for _ in range(10):
        timer.put(b"x", START_MS - 1)

    assert timer.look() == 1


def test_nudge_sent_too_early_by_a_clock_ahead_is_sent_again_in_seconds_not_hours(timer: Timer) -> None:
    timer.local_ms += 3 * HOUR_MS
    timer.clock.observe(timer.local_ms)
    timer.put(b"x", START_MS + 5_000)
    assert timer.look() == 1

    timer.clock.observe(START_MS, exact=True)
    timer.now_s, timer.local_ms = RETRY_S, timer.local_ms + 5_000

    assert timer.deadlines.wait_ms() == 0
    assert timer.look() == 1
    assert timer.sent[0] != timer.sent[1], "another attempt is another nudge"


def test_wait_after_a_nudge_is_until_the_next_look(timer: Timer) -> None:
    timer.clock.observe(START_MS)
    timer.put(b"x", START_MS)
    timer.look()

    timer.now_s = 2.0

    assert timer.deadlines.wait_ms() == (RETRY_S - 2.0) * 1000


def test_unknown_time_is_learnt_by_nudging_the_first_deadline(timer: Timer) -> None:
    timer.put(b"late", START_MS + 2 * HOUR_MS)
    timer.put(b"early", START_MS + HOUR_MS)

    assert timer.deadlines.wait_ms() == 0
    assert timer.look() == 1
    assert timer.sent[0].key == b"early"


def test_deadline_that_went_is_waited_for_no_more(timer: Timer) -> None:
    timer.clock.observe(START_MS)
    timer.put(b"x", START_MS + 1_000)

    timer.due.clear()
    timer.deadlines.put(b"x", None)
    timer.local_ms += 2_000

    assert timer.deadlines.wait_ms() == IDLE_MS
    assert timer.look() == 0


def test_deadline_that_moved_is_waited_for_where_it_is_now(timer: Timer) -> None:
    timer.clock.observe(START_MS)
    timer.put(b"x", START_MS + 1_000)
    timer.put(b"x", START_MS + 9_000)
    timer.local_ms += 2_000

    assert timer.look() == 0
    assert timer.deadlines.wait_ms() == 7_000


def test_put_deadlines_that_keep_moving_are_not_remembered_for_ever(timer: Timer) -> None:
    """Each release and each consumption moves its execution's next deadline; most are gone in seconds."""
    timer.clock.observe(START_MS)
    timer.put(b"first", START_MS + 1)
    for number in range(3 * STALE_MAX):
        timer.put(b"busy", START_MS + HOUR_MS + number)

    assert len(timer.deadlines._heap) <= STALE_MAX + 10
    timer.local_ms += 2 * HOUR_MS
    assert timer.look() == 2, "nothing that still waits was dropped"


def test_nudge_due_very_many_at_once_are_sent_in_parts(timer: Timer) -> None:
    timer.clock.observe(START_MS)
    for number in range(NUDGES_AT_ONCE + 5):
        timer.put(b"x%d" % number, START_MS - 1)

    assert timer.look() == NUDGES_AT_ONCE
    assert timer.deadlines.wait_ms() == 0
    assert timer.look() == 5
