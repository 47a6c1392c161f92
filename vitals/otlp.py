"""The sending of spans and metrics by OTLP over HTTP, configured by the variables of OpenTelemetry alone."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from prometheus_client import CollectorRegistry

from vitals.otlp_headers import keep_unread_headers_secret
from vitals.otlp_metrics import MetricsSender
from vitals.spans import Spans

SCOPE = "placet"


class ChosenIds(RandomIdGenerator):
    """The ids of spans: random, except that of a thread's next span if it was chosen before."""

    def __init__(self) -> None:
        self._next = threading.local()

    def choose(self, span_id: int) -> None:
        """Give this thread's next span an id."""
        self._next.span_id = span_id

    def generate_span_id(self) -> int:
        """Return the id of the next span."""
        chosen: int = getattr(self._next, "span_id", 0)
        if not chosen:
            return super().generate_span_id()
        self._next.span_id = 0
        return chosen


@dataclass(slots=True)
class Otlp:
    """What a process sends by OTLP; None for what it does not."""

    traces: TracerProvider | None
    ids: ChosenIds
    metrics: MetricsSender | None

    @classmethod
    def begun(cls, role: str, *, has_traces: bool, metrics_every_s: float | None) -> Otlp:
        """Begin to send; addresses, headers, sampling and batches are read from the environment by the SDK.

        Args:
            role: of the process.
            has_traces: True if it sends spans.
            metrics_every_s: the time between two readings of its metrics; None if it sends none.
        """
        keep_unread_headers_secret()
        resource = _resource(role)
        traces, ids = None, ChosenIds()
        if has_traces:
            traces = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=ids)
            traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        metrics = None
        if metrics_every_s is not None:
            metrics = MetricsSender(OTLPMetricExporter(), resource, metrics_every_s)
        return cls(traces, ids, metrics)

    def spans(self) -> Spans:
        """What makes the spans; they go nowhere if no spans are sent."""
        if self.traces is None:
            return Spans.unsent()
        return Spans(self.traces.get_tracer(SCOPE), self.ids.choose)

    def send_metrics(self, registry: CollectorRegistry) -> None:
        """Send the metrics of a registry from now on."""
        if self.metrics is not None:
            self.metrics.add(registry)

    def end(self, within_s: float) -> None:
        """Send what is left, and stop, within a time: a collector that is away must not hold a process back.

        Spans and metrics go at the same time: their collectors may be two, of which one does not answer.
        """
        until = time.monotonic() + within_s
        ends: list[Callable[[], None]] = []
        if self.traces is not None:
            ends.append(self.traces.shutdown)
        if self.metrics is not None:
            ends.append(self.metrics.stop)
        ending = [threading.Thread(target=one, name="placet-otlp-end", daemon=True) for one in ends]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join(max(0.0, until - time.monotonic()))


def _resource(role: str) -> Resource:
    """What sends: what the variables say of it, except for its role and its version, which are not theirs to say."""
    given = OTELResourceDetector().detect().attributes
    unless_given = {
        "service.name": f"placet-{role}",
        "service.instance.id": f"{role}@{socket.gethostname()}:{os.getpid()}",
    }
    own = {name: value for name, value in unless_given.items() if not given.get(name)}
    return Resource.create({**own, "placet.role": role, "service.version": version("placet-server")})
