"""The Prometheus metrics that all roles export, beside those of their own work."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from vitals.process_status import ProcessStatus


class StatusCollector(Collector):
    """A process's status as metrics, computed at each scrape."""

    def __init__(self, status: ProcessStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics of this moment."""
        heartbeat = self._status.heartbeat()
        rows: list[tuple[str, str, float | None]] = [
            ("placet_role_ready", "1 while the role does its work.", float(not heartbeat.problems())),
            ("placet_role_lag_records", "Records that the role has not read yet.", heartbeat.lag_records),
            (
                "placet_role_stalled_seconds",
                "Time that the role has been behind without progress.",
                heartbeat.stalled_ms / 1000,
            ),
            (
                "placet_role_loop_age_seconds",
                "Time since its work loop last ran.",
                heartbeat.loop_age_ms / 1000,
            ),
            (
                "placet_role_kafka_age_seconds",
                "Time since Kafka last answered it.",
                None if heartbeat.kafka_age_ms is None else heartbeat.kafka_age_ms / 1000,
            ),
        ]
        for name, text, value in rows:
            if value is not None:
                family = GaugeMetricFamily(name, text, labels=["role", "name"])
                family.add_metric([heartbeat.role, heartbeat.name], value)
                yield family


def role_registry(status: ProcessStatus) -> CollectorRegistry:
    """A registry with the metrics of every role: its status, its process, its garbage collector."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
