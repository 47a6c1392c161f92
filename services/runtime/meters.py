"""The Prometheus metrics of a decider."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

ROUND_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
APPEND_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
RECOVERY_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class WriterEnd(StrEnum):
    """Why a writer ended without being stopped."""

    APPEND_FAILED = "AppendFailed"
    DEPOSED = "Deposed"
    LOG_UNREACHABLE = "LogUnreachable"
    ERROR = "error"


class Meters:
    """The counters of one decider, for all its partitions."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Create them in a registry; without one they are counted but not exported."""
        self._commands = Counter(
            "placet_decider_commands", "Commands that were decided or buried.", registry=registry
        )
        self._events = Counter("placet_decider_events", "Events that were recorded.", registry=registry)
        self._dead_letters = Counter(
            "placet_decider_dead_letters", "Commands that went to the dead letters.", registry=registry
        )
        self._round = Histogram(
            "placet_decider_round_commands",
            "Commands decided in one batch.",
            buckets=ROUND_BUCKETS,
            registry=registry,
        )
        self._append = Histogram(
            "placet_decider_append_seconds",
            "Time until a batch was acknowledged.",
            buckets=APPEND_BUCKETS_S,
            registry=registry,
        )
        self._claims = Counter("placet_decider_claims", "Claims that were won.", registry=registry)
        self._term = Gauge(
            "placet_decider_term",
            "The term in force, by partition.",
            ["topic", "partition"],
            registry=registry,
        )
        self._recovery = Histogram(
            "placet_decider_recovery_seconds",
            "Time from the first record read to the claim in force.",
            buckets=RECOVERY_BUCKETS_S,
            registry=registry,
        )
        self._deaths = Counter(
            "placet_decider_writer_ends",
            "Writers that ended without being told to.",
            ["cause"],
            registry=registry,
        )
        self._terms: dict[tuple[str, int], int] = {}
        # Exported from the start: to Prometheus, a counter that first appears with its first count has not grown.
        for cause in WriterEnd:
            self._deaths.labels(cause)

    def decided(self, commands: int, events: int, dead_letters: int) -> None:
        """A round is complete."""
        if commands:
            self._commands.inc(commands)
            self._round.observe(commands)
        self._events.inc(events)
        self._dead_letters.inc(dead_letters)

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Measure an append until it is acknowledged."""
        begun = perf_counter()
        yield
        self._append.observe(perf_counter() - begun)

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Measure a recovery until its claim."""
        begun = perf_counter()
        yield
        self._recovery.observe(perf_counter() - begun)

    @contextmanager
    def writing(self, topic: str, partition: int, term: int) -> Iterator[None]:
        """A claim is in force within this context, and its term exported."""
        self._claims.inc()
        self._term.labels(topic, str(partition)).set(term)
        self._terms[topic, partition] = term
        try:
            yield
        finally:
            # Another writer of this process may have claimed the partition since.
            if self._terms.get((topic, partition)) == term:
                del self._terms[topic, partition]
                self._term.remove(topic, str(partition))

    def ended(self, cause: WriterEnd) -> None:
        """A writer ended without being stopped."""
        self._deaths.labels(cause).inc()


# Not exported; shared by all that were given no registry, so that no registry is made for each of them.
UNSEEN = Meters()
