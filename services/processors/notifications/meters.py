"""What the notifier counts of its work, for Prometheus."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


class NotifierMeters:
    """The counters of one notifier, by endpoint."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Make them in a registry; without one they are counted and shown to nobody."""
        by = ["endpoint"]
        self.taken = Counter(
            "placet_notifier_taken", "Messages that an endpoint has taken.", by, registry=registry
        )
        self.failed = Counter("placet_notifier_failed_tries", "Tries that failed.", by, registry=registry)
        self.given_up = Counter(
            "placet_notifier_given_up", "Messages that went to the dead letters.", by, registry=registry
        )
        self.overtaken = Counter(
            "placet_notifier_overtaken",
            "Messages whose hold was closed before they went.",
            by,
            registry=registry,
        )
        self._waiting = Gauge("placet_notifier_waiting", "Messages that wait.", by, registry=registry)

    def expect(self, endpoints: Iterable[str]) -> None:
        """Show each endpoint's counters at 0: to Prometheus one that begins with the first loss has not grown."""
        for endpoint in endpoints:
            for family in (self.taken, self.failed, self.given_up, self.overtaken, self._waiting):
                family.labels(endpoint)

    def waiting(self, found: Mapping[str, int], endpoints: list[str]) -> None:
        """Say how many messages wait for each endpoint."""
        for endpoint in endpoints:
            self._waiting.labels(endpoint).set(found.get(endpoint, 0))


# Shown to nobody; for whoever was given none.
UNSEEN = NotifierMeters()
