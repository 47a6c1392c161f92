"""The Prometheus metrics that all roles export, beside those of their own work."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from vitals.pulse import Pulse


class PulseCollector(Collector):
    """A pulse as metrics, computed at each scrape."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics of this moment."""
        word = self._pulse.word()
        rows: list[tuple[str, str, float | None]] = [
            ("placet_role_ready", "1 while the role does its work.", float(not word.problems())),
            ("placet_role_lag_records", "Records that the role has not read yet.", word.lag_records),
            (
                "placet_role_stalled_seconds",
                "Time that the role has been behind without progress.",
                word.stalled_ms / 1000,
            ),
            (
                "placet_role_loop_age_seconds",
                "Time since its work loop last ran.",
                word.loop_age_ms / 1000,
            ),
            (
                "placet_role_kafka_age_seconds",
                "Time since Kafka last answered it.",
                None if word.kafka_age_ms is None else word.kafka_age_ms / 1000,
            ),
        ]
        for name, text, value in rows:
            if value is not None:
                family = GaugeMetricFamily(name, text, labels=["role", "name"])
                family.add_metric([word.role, word.name], value)
                yield family


def role_registry(pulse: Pulse) -> CollectorRegistry:
    """A registry with the metrics of every role: its pulse, its process, its garbage collector."""
    registry = CollectorRegistry()
    registry.register(PulseCollector(pulse))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
