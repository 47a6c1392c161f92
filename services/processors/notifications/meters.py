"""The Prometheus metrics of the notifier."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


class NotifierMeters:
    """The counters of one notifier, by endpoint."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create them in a registry; without one they are counted but not exported."""
        by = ["endpoint"]
        self.taken = Counter(
            "placet_notifier_taken", "Messages that an endpoint accepted.", by, registry=registry
        )
        self.failed = Counter("placet_notifier_failed_tries", "Tries that failed.", by, registry=registry)
        self.given_up = Counter(
            "placet_notifier_given_up", "Messages that went to the dead letters.", by, registry=registry
        )
        self.overtaken = Counter(
            "placet_notifier_overtaken",
            "Messages whose hold was closed before they were sent.",
            by,
            registry=registry,
        )
        self._waiting = Gauge("placet_notifier_waiting", "Messages that wait.", by, registry=registry)

    def expect(self, endpoints: Iterable[str]) -> None:
        """Export each endpoint's counters from 0: to Prometheus, a counter that first appears at 1 has not grown."""
        for endpoint in endpoints:
            for family in (self.taken, self.failed, self.given_up, self.overtaken, self._waiting):
                family.labels(endpoint)

    def waiting(self, found: Mapping[str, int], endpoints: list[str]) -> None:
        """Set the number of messages that wait for each endpoint."""
        for endpoint in endpoints:
            self._waiting.labels(endpoint).set(found.get(endpoint, 0))


# Not exported; for notifiers that were given no registry.
UNSEEN = NotifierMeters()
