"""The gateway's Prometheus metrics: the rate of requests, the time to answer, the lag of the tail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gateway.live.heartbeats import ProcessHealth
from vitals.heartbeat import Heartbeat

ANSWER_BUCKETS_S = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """The gateway's metrics.

    Attributes:
        registry: has them all.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register them.

        Args:
            registry: where; None for one of their own.
        """
        self.registry = CollectorRegistry() if registry is None else registry
        self.requests = Counter(
            "placet_gateway_requests",
            "HTTP requests by method and status.",
            ["method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "placet_gateway_request_seconds",
            "Time until an HTTP answer.",
            ["method"],
            buckets=ANSWER_BUCKETS_S,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "placet_gateway_requests_in_flight",
            "HTTP requests that are being served, including long polls and streams.",
            registry=self.registry,
        )
        self.messages = Counter(
            "placet_gateway_messages", "WebSocket messages from clients.", registry=self.registry
        )
        self.sockets = Gauge("placet_gateway_sockets", "Open WebSockets and streams.", registry=self.registry)
        self.resyncs = Counter(
            "placet_gateway_resyncs", "Readers too slow for their messages.", registry=self.registry
        )
        self.lag = Gauge("placet_gateway_lag_records", "Records not read yet.", registry=self.registry)
        self.waiting = Gauge(
            "placet_gateway_commands_in_flight", "Commands without an answer.", registry=self.registry
        )
        self.open_holds = Gauge(
            "placet_gateway_open_holds", "Open holds in the live cache.", registry=self.registry
        )
        self.unreadable = Gauge(
            "placet_gateway_unreadable_records",
            "Records of the log that could not be read.",
            registry=self.registry,
        )
        self.forged = Gauge(
            "placet_gateway_forged_records",
            "Records of the log in the term in force that no decider signed; they do not count.",
            registry=self.registry,
        )
        self._see_the_installation()

    def _see_the_installation(self) -> None:
        self._ready = Gauge("placet_ready", "1 while the installation decides.", registry=self.registry)
        self._kafka_age = Gauge(
            "placet_kafka_age_seconds", "Time since Kafka last answered this gateway.", registry=self.registry
        )
        labels = ["role", "name"]
        self._observed: dict[Gauge, set[tuple[str, str]]] = {}
        self._process_ready = Gauge(
            "placet_component_ready", "1 while a process does its work.", labels, registry=self.registry
        )
        self._process_silent = Gauge(
            "placet_component_silent_seconds",
            "Time since the last heartbeat of a process.",
            labels,
            registry=self.registry,
        )
        self._process_lag = Gauge(
            "placet_component_lag_records",
            "Records that a process has not read yet.",
            labels,
            registry=self.registry,
        )

    def observe_processes(
        self, processes: Sequence[ProcessHealth], own: Heartbeat, *, is_ready: bool
    ) -> None:
        """Set the metrics of the installation's processes; of several with one name, those of the worst."""
        self._ready.set(is_ready)
        # Infinity for "never" exceeds the threshold of every alert; 0 would mean that Kafka has just answered.
        self._kafka_age.set(math.inf if own.kafka_age_ms is None else own.kafka_age_ms / 1000)
        worst_last = sorted(processes, key=lambda process: (not process.is_working, process.age_s))
        named = {(process.heartbeat.role, process.heartbeat.name): process for process in worst_last}
        lags = {labels: process.heartbeat.lag_records for labels, process in named.items()}
        self._observe(self._process_ready, {labels: one.is_working for labels, one in named.items()})
        self._observe(self._process_silent, {labels: one.age_s for labels, one in named.items()})
        self._observe(self._process_lag, {labels: lag for labels, lag in lags.items() if lag is not None})

    def _observe(self, family: Gauge, values: Mapping[tuple[str, str], float]) -> None:
        # Never cleared: the thread that sends metrics may read them at any time, and would find none.
        for labels, value in values.items():
            family.labels(*labels).set(value)
        for labels in self._observed.get(family, set()) - values.keys():
            family.remove(*labels)
        self._observed[family] = set(values)

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self.registry)
