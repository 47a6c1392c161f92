"""Prometheus metrics sent by OTLP: the same families that `/metrics` shows, at an interval."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

SCOPE = InstrumentationScope("placet")
SCHEMA = ""
CUMULATIVE = AggregationTemporality.CUMULATIVE
# OTLP has nothing that stands for no value: what Prometheus shows as such is left out.
UNITS = {"_seconds": "s", "_bytes": "By"}
# Where OTLP is stored by Prometheus' names, a gauge of the unit 1 becomes another one: `…_ratio`.
NO_UNIT = ""

logger = logging.getLogger(__name__)


class MetricsSender:
    """Sends the metrics of registries until it is stopped, and once more then."""

    def __init__(self, exporter: MetricExporter, resource: Resource, interval_s: float) -> None:
        """Start a thread that sends.

        Args:
            exporter: sends one reading.
            resource: the process.
            interval_s: between two readings.
        """
        self._exporter = exporter
        self._resource = resource
        self._interval_s = interval_s
        self._registries: list[CollectorRegistry] = []
        self._began_ns = time.time_ns()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="placet-otlp-metrics", daemon=True)
        self._thread.start()

    def add(self, registry: CollectorRegistry) -> None:
        """Send this registry's metrics too."""
        self._registries.append(registry)

    def stop(self) -> None:
        """Send the last reading, and stop."""
        self._stopping.set()
        self._thread.join()
        self._exporter.shutdown()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._try_to_send()
        self._try_to_send()

    def _try_to_send(self) -> None:
        try:
            self._send()
        except Exception:
            # A collector of a registry may fail once, while what it reads changes: the next reading has it all.
            logger.exception("the metrics could not be read, and are not sent this time")

    def _send(self) -> None:
        families = [family for registry in tuple(self._registries) for family in registry.collect()]
        metrics = list(metrics_of(families, self._began_ns, time.time_ns()))
        if metrics:
            scope = ScopeMetrics(SCOPE, metrics, SCHEMA)
            # The exporter reports in its log what it cannot send; the next reading has it all.
            self._exporter.export(MetricsData([ResourceMetrics(self._resource, [scope], SCHEMA)]))


def metrics_of(families: Iterable[Family], began_ns: int, now_ns: int) -> Iterator[Metric]:
    """The metrics of Prometheus' families in OTLP's form.

    Args:
        families: as a registry collects them.
        began_ns: since when counters count, in ns since the epoch.
        now_ns: the time of the reading, likewise.
    """
    for family in families:
        unit = next((unit for ending, unit in UNITS.items() if family.name.endswith(ending)), NO_UNIT)
        if family.type == "histogram":
            points = list(_histogram_points(family.samples, began_ns, now_ns))
            yield Metric(family.name, family.documentation, unit, Histogram(points, CUMULATIVE))
            continue
        counts = family.type == "counter"
        numbers = [
            NumberDataPoint(sample.labels, began_ns if counts else 0, now_ns, sample.value)
            for sample in family.samples
            if not sample.name.endswith("_created") and math.isfinite(sample.value)
        ]
        data = Sum(numbers, CUMULATIVE, is_monotonic=True) if counts else Gauge(numbers)
        if numbers:
            yield Metric(family.name, family.documentation, unit, data)


def _histogram_points(samples: Iterable[Sample], began_ns: int, now_ns: int) -> Iterator[HistogramDataPoint]:
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    for sample in samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        series[tuple(labels.items())].append(sample)
    for labels_of, of_one in series.items():
        buckets = sorted((float(one.labels["le"]), int(one.value)) for one in of_one if "le" in one.labels)
        total = next(one.value for one in of_one if one.name.endswith("_sum"))
        # Prometheus counts each bucket with all below it, OTLP without.
        through = [count for _, count in buckets]
        counts = [count - before for count, before in zip(through, [0, *through], strict=False)]
        bounds = [bound for bound, _ in buckets if math.isfinite(bound)]
        count = through[-1]
        no_value: Any = (
            None  # Prometheus keeps neither a least nor a greatest value; in OTLP both are optional
        )
        yield HistogramDataPoint(
            dict(labels_of), began_ns, now_ns, count, total, counts, bounds, no_value, no_value
        )
