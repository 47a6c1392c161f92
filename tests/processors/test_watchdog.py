"""The watchdog's judgement, without a thread and without a clock."""

import subprocess
import sys
import threading

import pytest

from services.processors.errors import EXIT_STALLED, TrustError
from services.processors.watchdog import Gauge, Lease, StallDetector, Watchdog, WorkerStops


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_observe_behind_without_progress_stalls_after_the_limit() -> None:
    detector = StallDetector(10.0)
    assert detector.observe(0.0, {"p": Gauge(5, 3)}) == []
    assert detector.observe(9.9, {"p": Gauge(5, 4)}) == []
    assert detector.observe(10.0, {"p": Gauge(5, 4)}) == ["p"]


def test_observe_progress_of_one_does_not_hide_another_that_stands_still() -> None:
    detector = StallDetector(10.0)
    for second in range(11):
        stalled = detector.observe(second, {"moves": Gauge(second, 1), "stands": Gauge(7, 1)})
    assert stalled == ["stands"]


def test_observe_idle_for_long_then_behind_gets_the_whole_limit() -> None:
    detector = StallDetector(10.0)
    detector.observe(0.0, {"p": Gauge(5, 0)})
    detector.observe(1000.0, {"p": Gauge(5, 0)})
    assert detector.observe(1009.0, {"p": Gauge(5, 1)}) == []
    assert detector.observe(1010.0, {"p": Gauge(5, 1)}) == ["p"]


def test_observe_partition_that_went_away_and_came_back_starts_anew() -> None:
    detector = StallDetector(10.0)
    detector.observe(0.0, {"p": Gauge(5, 1)})
    detector.observe(5.0, {})
    assert detector.observe(11.0, {"p": Gauge(5, 1)}) == []


def test_lease_awake_all_the_time_holds() -> None:
    clock = Clock()
    lease = Lease(10.0, clock)
    for _ in range(5):
        clock.now_s += 9.0
        lease.renew()
    lease.check()


def test_lease_stopped_for_longer_than_the_session_neither_writes_nor_renews() -> None:
    clock = Clock()
    lease = Lease(10.0, clock)
    clock.now_s += 10.5
    with pytest.raises(TrustError, match="stopped for 10 s"):
        lease.check()
    with pytest.raises(TrustError):
        lease.renew()


def test_watchdog_meets_a_worker_that_stops_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    looked = threading.Event()

    def read(_timeout_s: float) -> dict[str, Gauge]:
        looked.set()
        raise WorkerStops

    watchdog = Watchdog(4.0, Lease(60.0), read)
    watchdog._period_s = 0.01
    with caplog.at_level("DEBUG"):
        watchdog.start()
        assert looked.wait(5.0)
        watchdog.stop()
        watchdog.join(5.0)
    assert caplog.text == ""
    assert set(watchdog._gauges()) == {"the end of the process"}


STALLS = """
import logging
from services.processors.watchdog import Gauge, Lease, Watchdog
from vitals.logs import log_to_stderr
log_to_stderr("INFO")
watchdog = Watchdog(0.01, Lease(60.0), lambda within_s: {"partition 3": Gauge(5, 1)})
watchdog.start()
watchdog.join()
"""


def test_watchdog_that_ends_its_process_says_why_after_where_each_thread_was() -> None:
    done = subprocess.run([sys.executable, "-c", STALLS], capture_output=True, text=True, timeout=60)
    assert done.returncode == EXIT_STALLED
    dumped, why = done.stderr.rstrip("\n").rsplit("\n", 1)
    assert "most recent call first" in dumped
    assert why.endswith("No progress on partition 3: the processor ends so that it can be restarted.")
