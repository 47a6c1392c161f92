"""What Prometheus reads: how much comes in, how fast it is answered, how far the tail is."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

ANSWER_BUCKETS_S = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """The gateway's metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
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

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)
