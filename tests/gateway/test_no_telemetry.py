"""FastAPI's own telemetry is off, also in a process with providers, as `opentelemetry-instrument` sets them."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.telemetry import TelemetryConfig
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.app import NO_TELEMETRY, routed_app

SETTINGS = {"tracer_provider", "meter_provider", "logger_provider", "exclude"}


def test_every_part_of_it_is_turned_off_by_name() -> None:
    """A new part, as of a later version, must be turned off too."""
    assert set(NO_TELEMETRY) == set(TelemetryConfig.__annotations__) - SETTINGS
    assert not any(NO_TELEMETRY.values())


async def test_request_has_no_span_of_fastapi(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: MeterProvider(shutdown_on_exit=False))
    monkeypatch.setattr(_logs, "get_logger_provider", lambda: LoggerProvider(shutdown_on_exit=False))
    answers: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    app = routed_app()
    request = {"type": "http", "method": "GET", "path": "/nowhere/secret", "query_string": b"q=secret"}
    await app({**request, "scheme": "http", "headers": [], "http_version": "1.1"}, receive, send)
    assert answers[0]["status"] == 404
    assert exporter.get_finished_spans() == ()
    assert not app._native_telemetry.enabled()
    provider.shutdown()
