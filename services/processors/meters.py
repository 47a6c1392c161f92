"""The Prometheus metrics of the trust processor."""

from collections import Counter as Counts
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram

ROUND_BUCKETS = (1, 5, 20, 50, 100, 200, 500, 1_000, 2_000)


class Weighed(NamedTuple):
    """What was weighed in a round: verdicts by result, and facts about sampled calls by kind."""

    verdicts: Counts[str]
    samples: Counts[str]


class TrustMeters:
    """The counters of one trust processor."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create them in a registry; without one they are counted but not exported."""
        self._facts = Counter("placet_trust_facts", "Records that were counted.", registry=registry)
        self._written = Counter("placet_trust_parts_written", "Parts that were written.", registry=registry)
        self._round = Histogram(
            "placet_trust_round_facts", "Records of one round.", buckets=ROUND_BUCKETS, registry=registry
        )

        self._verdicts = Counter(
            "placet_trust_verdicts",
            "Verdicts for which an adaptive block weighed trust, by what became of the hold.",
            ["result"],
            registry=registry,
        )
        self._samples = Counter(
            "placet_trust_sample_facts",
            "What people said of sampled calls: approval, or anything else.",
            ["fact"],
            registry=registry,
        )

    def counted(self, facts: int, parts: int, weighed: Weighed) -> None:
        """A round is complete."""
        self._facts.inc(facts)
        self._round.observe(facts)
        self._written.inc(parts)
        for result, number in weighed.verdicts.items():
            self._verdicts.labels(result).inc(number)
        for fact, number in weighed.samples.items():
            self._samples.labels(fact).inc(number)


# Not exported; for processors that were given no registry.
UNSEEN = TrustMeters()
