"""The Prometheus metrics of the trust processor."""

from prometheus_client import CollectorRegistry, Counter, Histogram

ROUND_BUCKETS = (1, 5, 20, 50, 100, 200, 500, 1_000, 2_000)


class TrustMeters:
    """The counters of one trust processor."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create them in a registry; without one they are counted but not exported."""
        self._facts = Counter("placet_trust_facts", "Records that were counted.", registry=registry)
        self._written = Counter("placet_trust_parts_written", "Parts that were written.", registry=registry)
        self._round = Histogram(
            "placet_trust_round_facts", "Records of one round.", buckets=ROUND_BUCKETS, registry=registry
        )

    def counted(self, facts: int, parts: int) -> None:
        """A round is complete."""
        self._facts.inc(facts)
        self._round.observe(facts)
        self._written.inc(parts)


# Not exported; for processors that were given no registry.
UNSEEN = TrustMeters()
