"""What a processor reports of itself: ready only while it is known how much it has left to read."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from services.processors.watchdog import REBALANCE, Gauge
from services.processors.worker import report
from vitals.health_reporting import HealthReporter
from vitals.heartbeat import READY, STARTING, STOPPING
from vitals.heartbeat_file import read_heartbeat
from vitals.heartbeat_sender import HeartbeatSender
from vitals.process_status import ProcessStatus

REBALANCING = {REBALANCE: Gauge(position=-4_000, behind=1)}
FAR_BEHIND = {"partition 0": Gauge(position=5, behind=40_000), "partition 1": Gauge(position=7, behind=0)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trust.json"


@pytest.fixture
def health(file: Path) -> HealthReporter:
    status = ProcessStatus("trust", "t")
    return HealthReporter(status, CollectorRegistry(), HeartbeatSender(status, None, file))


def test_report_of_a_rebalance_is_starting_with_an_unknown_lag(health: HealthReporter) -> None:
    report(health, REBALANCING)
    beat = health.status.heartbeat()
    assert (beat.state, beat.lag_records, beat.stalled_ms) == (STARTING, None, 0)


def test_report_of_partitions_is_ready_with_their_lag_at_once(health: HealthReporter, file: Path) -> None:
    report(health, REBALANCING)
    report(health, FAR_BEHIND)
    found = read_heartbeat(file)
    assert found is not None
    assert (found[0].state, found[0].lag_records) == (READY, 40_000)


def test_report_of_a_rebalance_of_a_process_that_was_ready_is_starting_again(
    health: HealthReporter, file: Path
) -> None:
    report(health, FAR_BEHIND)
    report(health, REBALANCING)
    found = read_heartbeat(file)
    assert found is not None
    assert (found[0].state, found[0].lag_records) == (STARTING, None)


def test_report_of_a_worker_without_partitions_is_ready(health: HealthReporter) -> None:
    report(health, {})
    beat = health.status.heartbeat()
    assert (beat.state, beat.lag_records) == (READY, 0)


@pytest.mark.parametrize("gauges", [REBALANCING, FAR_BEHIND])
def test_report_of_a_process_that_stops_leaves_its_state(
    health: HealthReporter, gauges: dict[str, Gauge]
) -> None:
    health.set_state(STOPPING)
    report(health, gauges)
    assert health.status.state == STOPPING
