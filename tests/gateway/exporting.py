"""A process that traces, for tests of its spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from vitals import tracing
from vitals.spans import Spans


@contextmanager
def exporting() -> Iterator[InMemorySpanExporter]:
    """Within this context `tracing.spans` are kept once they have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "spans", Spans(provider.get_tracer("test")))
        yield exporter
    provider.shutdown()
