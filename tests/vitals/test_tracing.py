"""The telemetry of a process: none unless it is asked for, and then ids, names and codes only."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from opentelemetry.sdk.metrics.export import Gauge, Histogram, Sum
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as CounterOf
from prometheus_client import Gauge as GaugeOf
from prometheus_client import Histogram as HistogramOf

from host.errors import SettingsRefused
from tests.schemas.test_trace_context import TRACE
from tests.servers.otlp import collecting
from vitals import tracing
from vitals.json_logs import JsonFormatter
from vitals.otlp_metrics import metrics_of
from vitals.spans import Spans, current_trace, trace_said

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
OWN_ENDPOINT = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}
ROLES = ("services.runtime.main", "projections.main", "services.processors.main", "gateway.main")


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exported: InMemorySpanExporter) -> Iterator[Spans]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exported))
    tracing.spans = Spans(provider.get_tracer("test"))
    yield tracing.spans
    tracing.spans = None
    provider.shutdown()


@pytest.mark.parametrize(
    ("environ", "traces", "metrics"),
    [
        ({}, False, False),
        (ENDPOINT, True, True),
        (OWN_ENDPOINT, True, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False, True),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, False, False),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True, True),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "Cumulative"}, True, True),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a b%3d%e9 , other=c=d,"}, True, True),
        ({**OWN_ENDPOINT, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"}, True, False),
        ({"OTEL_SERVICE_NAME": "placet"}, False, False),
    ],
)
def test_signals_are_on_by_the_standard_variables(
    environ: dict[str, str], traces: bool, metrics: bool
) -> None:
    assert (tracing.is_on(environ, "TRACES"), tracing.is_on(environ, "METRICS")) == (traces, metrics)


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_TRACES_EXPORTER": "console"},
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"},
        {**ENDPOINT, "OTEL_METRIC_EXPORT_INTERVAL": "1m"},
        {**ENDPOINT, "OTEL_METRIC_EXPORT_INTERVAL": "0"},
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"},
        {**ENDPOINT, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "lowmemory"},
    ],
)
def test_unsupported_exporter_is_refused_by_its_variable(environ: dict[str, str]) -> None:
    (name,) = environ.keys() - ENDPOINT.keys()
    with pytest.raises(SettingsRefused, match=name), tracing.telemetry("decider", environ):
        pass


@pytest.mark.parametrize("signal", ["", "TRACES_", "METRICS_"])
@pytest.mark.parametrize("value", ["api-key: GB29", "a=b,GB29", "api-key=a%0aGB29", "api-key=%e2%82%acGB29"])
def test_headers_that_cannot_be_sent_are_refused_by_their_variable_alone(signal: str, value: str) -> None:
    name = f"OTEL_EXPORTER_OTLP_{signal}HEADERS"
    with pytest.raises(SettingsRefused) as refused, tracing.telemetry("decider", {**ENDPOINT, name: value}):
        pass
    assert str(refused.value) == f"{name} must be NAME=VALUE, separated by commas"


@pytest.mark.parametrize("role", ROLES)
def test_role_that_tells_nothing_imports_nothing_of_it(role: str) -> None:
    program = (
        "import importlib, os, sys\n"
        "from vitals.logs import log_to_stderr\n"
        "from vitals.tracing import telemetry\n"
        f"importlib.import_module({role!r})\n"
        "log_to_stderr('INFO')\n"
        "with telemetry('decider', {}):\n"
        "    print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'structlog'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_process_tells_a_collector_its_last_span_before_it_ends() -> None:
    with collecting() as collector:
        environ = collector.environ
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            with tracing.telemetry("decider", environ):
                assert tracing.spans is not None
                with tracing.spans.span("last", SpanKind.SERVER, TRACE, {"placet.tenant": "acme"}):
                    pass
        (told,) = collector.spans
    assert (told.service, told.name, told.trace_id) == ("placet-decider", "last", TRACE[3:35])
    assert (told.parent_id, told.attributes) == (TRACE[36:52], {"placet.tenant": "acme"})
    assert collector.versions == {"placet-decider": version("placet-server")}
    assert tracing.spans is None


def test_error_is_told_by_its_type_alone(spans: Spans, exported: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="GB29"), spans.span("failing"):
        raise ValueError("GB29")
    (span,) = exported.get_finished_spans()
    assert (span.attributes, span.events, span.status.description) == ({"error.type": "ValueError"}, (), None)


def test_work_ends_with_its_last_answer(spans: Spans, exported: InMemorySpanExporter) -> None:
    seen: list[str] = []
    with spans.work("ws propose", SpanKind.SERVER, TRACE):
        first = tracing.carried(lambda _: seen.append(current_trace()))
        second = tracing.carried(lambda _: seen.append(current_trace()))
        within = current_trace()
    assert exported.get_finished_spans() == ()
    assert current_trace() == ""
    first(None)
    assert exported.get_finished_spans() == ()
    second(None)
    (span,) = exported.get_finished_spans()
    assert seen == [within, within]
    assert span.name == "ws propose"


def test_callback_outside_any_work_is_the_same(spans: Spans) -> None:
    def answered(_: object) -> None:
        """Do nothing."""

    assert tracing.carried(answered) is answered


@pytest.mark.parametrize("text", [None, "", "00-1-2-3", TRACE + "0"])
def test_malformed_context_of_a_client_begins_a_new_trace(spans: Spans, text: str | None) -> None:
    with spans.span("request", parent=trace_said(text)):
        assert current_trace()[3:35] != TRACE[3:35]


def test_unsampled_trace_stays_unsampled(spans: Spans, exported: InMemorySpanExporter) -> None:
    with spans.span("request", parent=TRACE[:-2] + "00"):
        assert current_trace()[3:35] == TRACE[3:35]
        assert current_trace().endswith("-00")
    assert exported.get_finished_spans() == ()


def written(message: str, *values: object, failing: bool = False) -> dict[str, object]:
    """A line of a JSON log, parsed."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("services.runtime")
    logger.addHandler(handler)
    try:
        if failing:
            raise ValueError("wrong")
        logger.warning(message, *values)
    except ValueError:
        logger.exception(message, *values)
    (line,) = stream.getvalue().splitlines()
    found: dict[str, object] = json.loads(line)
    return found


def test_json_line_has_the_ids_of_the_work_in_hand(spans: Spans) -> None:
    facts = {"placet.tenant": "acme", "placet.execution_id": "run-1", "placet.tool": "send_money"}
    with spans.span("decide", parent=TRACE, facts=facts):
        spans.note({"placet.call_id": "c-1"})
        line = written("a %s", "word")
    assert list(line)[:2] == ["timestamp", "level"]
    assert (line["level"], line["logger"], line["event"]) == ("warning", "services.runtime", "a word")
    assert (line["tenant"], line["execution_id"], line["call_id"]) == ("acme", "run-1", "c-1")
    assert line["trace_id"] == TRACE[3:35]
    assert "tool" not in line
    assert written("later").keys() == {"timestamp", "level", "logger", "event"}


def test_json_line_without_a_collector_shows_the_callers_trace() -> None:
    unsent = Spans.unsent()
    with unsent.span("request", parent=TRACE):
        assert written("x")["trace_id"] == TRACE[3:35]


def test_json_line_of_an_error_is_one_line_without_tokens() -> None:
    token = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJib3QifQ.c2lnbmF0dXJl"
    line = written("refused %s", token, failing=True)
    assert line["event"] == "refused [token]"
    assert "ValueError: wrong" in str(line["exception"])


def test_metrics_of_prometheus_are_told_as_they_are() -> None:
    registry = CollectorRegistry()
    CounterOf("placet_things", "Things.", ["role"], registry=registry).labels("decider").inc(3)
    GaugeOf("placet_age_seconds", "Age.", registry=registry).set(float("inf"))
    GaugeOf("placet_level", "Level.", registry=registry).set(7)
    seconds = HistogramOf("placet_wait_seconds", "Wait.", buckets=(0.1, 1.0), registry=registry)
    for value in (0.05, 0.5, 0.6, 5.0):
        seconds.observe(value)
    found = {metric.name: metric for metric in metrics_of(registry.collect(), 1, 2)}

    assert found.keys() == {"placet_things", "placet_level", "placet_wait_seconds"}
    count, level, wait = (
        found[name].data for name in ("placet_things", "placet_level", "placet_wait_seconds")
    )
    assert isinstance(count, Sum)
    assert count.is_monotonic
    assert [(dict(one.attributes or {}), one.value) for one in count.data_points] == [
        ({"role": "decider"}, 3.0)
    ]
    # With 1 Prometheus would store the gauge as placet_level_ratio, of which no rule of ours knows.
    assert [found[name].unit for name in ("placet_things", "placet_level")] == ["", ""]
    assert isinstance(level, Gauge)
    assert [one.value for one in level.data_points] == [7.0]
    assert isinstance(wait, Histogram)
    (point,) = wait.data_points
    assert (point.count, point.sum, list(point.bucket_counts)) == (4, 6.15, [1, 2, 1])
    assert (list(point.explicit_bounds), found["placet_wait_seconds"].unit) == ([0.1, 1.0], "s")
