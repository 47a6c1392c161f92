"""The Prometheus metrics of a projector."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram

BATCH_BUCKETS = (1, 5, 20, 50, 100, 200, 500, 1_000, 2_000, 4_000)
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meters:
    """The metrics of one projector."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create the metrics in a registry; without one they are counted but not exported."""
        self._records = Counter(
            "placet_projector_records", "Records that were folded into the views.", registry=registry
        )
        self._batch = Histogram(
            "placet_projector_batch_records",
            "Records of one transaction.",
            buckets=BATCH_BUCKETS,
            registry=registry,
        )
        self._fold = Histogram(
            "placet_projector_fold_seconds",
            "Time to fold the records of one transaction.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )
        self._transaction = Histogram(
            "placet_projector_transaction_seconds",
            "Time of one transaction in the database.",
            buckets=SECONDS_BUCKETS,
            registry=registry,
        )

    @contextmanager
    def folding(self, records: int) -> Iterator[None]:
        """Measure the duration of a fold."""
        begun = perf_counter()
        yield
        self._fold.observe(perf_counter() - begun)
        self._batch.observe(records)
        self._records.inc(records)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure the duration of a transaction that is committed."""
        begun = perf_counter()
        yield
        self._transaction.observe(perf_counter() - begun)


# Not exported; the default for callers that pass no meters.
UNSEEN = Meters()
