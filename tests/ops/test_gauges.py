"""Gauges with a label for what comes and goes: shown while it is there, at every moment of it, and not after."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from gateway.live.heartbeats import ProcessHealth
from gateway.metrics import Metrics
from services.runtime.meters import Meters
from vitals.process_status import ProcessStatus

OWN = ProcessStatus("gateway", "gateway").heartbeat()
TERM = "placet_decider_term"


def processes(metrics: Metrics, family: str) -> dict[str, float]:
    """The value of each process in one family."""
    return {
        sample.labels["name"]: sample.value
        for found in metrics.registry.collect()
        if found.name == family
        for sample in found.samples
    }


def health(name: str, *, age_s: float = 1.0, lag: int | None = 0) -> ProcessHealth:
    heartbeat = ProcessStatus("decider", name).heartbeat()
    return ProcessHealth(replace(heartbeat, lag_records=lag), age_s)


def test_processes_are_shown_while_their_gauges_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    present = [health("d1"), health("d2")]
    metrics.observe_processes(present, OWN, is_ready=True)
    labels, seen = Gauge.labels, []

    def read_before(self: Gauge, *values: Any) -> Gauge:
        # As the thread that sends metrics may, at any time.
        seen.append(set(processes(metrics, "placet_component_ready")))
        return labels(self, *values)

    monkeypatch.setattr(Gauge, "labels", read_before)
    metrics.observe_processes(present, OWN, is_ready=True)
    assert seen
    assert all(names == {"d1", "d2"} for names in seen)


def test_process_that_is_gone_is_shown_no_more() -> None:
    metrics = Metrics()
    metrics.observe_processes([health("d1"), health("d2")], OWN, is_ready=True)
    metrics.observe_processes([health("d2", lag=None), health("d2", age_s=99.0)], OWN, is_ready=True)
    assert set(processes(metrics, "placet_component_ready")) == {"d2"}
    assert processes(metrics, "placet_component_silent_seconds") == {"d2": 99.0}
    metrics.observe_processes([health("d2", lag=None)], OWN, is_ready=True)
    assert processes(metrics, "placet_component_lag_records") == {}
    assert set(processes(metrics, "placet_component_ready")) == {"d2"}


def term(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value(TERM, {"topic": "events", "partition": "3"})


def test_term_of_a_partition_is_shown_while_it_is_written() -> None:
    registry = CollectorRegistry()
    meters = Meters(registry)
    with meters.writing("events", 4, 1):
        with meters.writing("events", 3, 7):
            assert term(registry) == 7
        assert term(registry) is None
        assert registry.get_sample_value(TERM, {"topic": "events", "partition": "4"}) == 1


def test_term_of_a_partition_that_came_back_stays_when_its_earlier_writer_is_over() -> None:
    registry = CollectorRegistry()
    meters = Meters(registry)
    with ExitStack() as later:
        with meters.writing("events", 3, 7):
            later.enter_context(meters.writing("events", 3, 8))
        assert term(registry) == 8
    assert term(registry) is None
