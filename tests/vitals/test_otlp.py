"""What a process sends by OTLP: who it says it is, and that one failure takes nothing else with it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from host.errors import SettingsRefused
from tests.servers.otlp import collecting
from vitals import tracing
from vitals.otlp import Otlp
from vitals.otlp_metrics import MetricsSender

WAIT_S = 30.0


def sends(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The attributes of what a decider's spans come from, with these variables."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    otlp = Otlp.begun("decider", has_traces=True, metrics_every_s=None)
    otlp.end(WAIT_S)
    assert otlp.traces is not None
    return dict(otlp.traces.resource.attributes)


def test_attributes_of_the_variables_win_except_for_role_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "service.instance.id=pod-7,service.name=mine,service.version=9.9,placet.role=x,other=prod"
    found = sends({"OTEL_RESOURCE_ATTRIBUTES": given}, monkeypatch)
    assert (found["service.instance.id"], found["service.name"], found["other"]) == ("pod-7", "mine", "prod")
    assert found["placet.role"] == "decider"
    assert found["service.version"] != "9.9"


def test_process_names_itself_where_the_variables_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sends({"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=,other=prod"}, monkeypatch)
    assert str(found["service.instance.id"]).startswith("decider@")
    assert found["service.name"] == "placet-decider"


@pytest.mark.parametrize("held", ["/v1/metrics", "/v1/traces"])
def test_collector_that_does_not_answer_for_one_signal_loses_nothing_of_the_other(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    Gauge("placet_level", "Level.", registry=registry).set(1)
    told = threading.Event()
    with collecting() as collector:
        take = collector.take

        def other_first(path: str, body: bytes) -> bytes:
            if path == held:
                told.wait(WAIT_S)
                return take(path, body)
            answer = take(path, body)
            told.set()
            return answer

        monkeypatch.setattr(collector, "take", other_first)
        monkeypatch.setattr(tracing, "LAST_WITHIN_S", WAIT_S / 6)
        # Sent at the end alone.
        later = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
        environ = {**collector.environ, **later}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with tracing.telemetry("decider", environ):
            tracing.also_by_otlp(registry)
            assert tracing.spans is not None
            with tracing.spans.span("last"):
                pass
        found = [span.name for span in collector.spans], dict(collector.metrics)
        told.set()
    assert found == (["last"], {"placet-decider": {"placet_level"}})


def test_telemetry_that_was_ended_within_is_not_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []
    with collecting() as collector, tracing.telemetry("decider", collector.environ):
        monkeypatch.setattr(Otlp, "end", lambda self, within_s: ends.append(within_s))
        tracing.end()
        tracing.end()
        assert (tracing.spans, tracing.sends_metrics()) == (None, False)
    assert ends == [tracing.LAST_WITHIN_S]


def test_check_of_variables_sends_nothing_and_leaves_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    with collecting() as collector:
        environ = {**collector.environ, "OTEL_METRIC_EXPORT_INTERVAL": "1"}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        tracing.check(environ)
        assert collector.raw == []
    assert (tracing.spans, tracing.sends_metrics()) == (None, False)
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_BSP_MAX_QUEUE_SIZE", "256"), ("OTEL_EXPORTER_OTLP_HEADERS", "api-key: GB29")]
)
def test_check_refuses_what_a_process_with_these_variables_would(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"OTEL_TRACES_EXPORTER": "otlp", name: value}
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsRefused) as checked:
        tracing.check(environ)
    with pytest.raises(SettingsRefused) as refused, tracing.telemetry("decider", environ):
        pass
    assert str(checked.value) == str(refused.value)
    assert caplog.records == []


def test_end_of_what_was_never_begun_does_nothing() -> None:
    tracing.end()
    with tracing.telemetry("decider", {}, json_logs=True):
        tracing.end()
        assert tracing.spans is not None


class FailingOnce(Collector):
    """Metrics that cannot be read at first."""

    has_failed = False

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read them."""
        if not self.has_failed:
            self.has_failed = True
            raise RuntimeError("dictionary changed size during iteration")
        yield GaugeMetricFamily("placet_level", "Level.", value=1)


class Exported(OTLPMetricExporter):
    """An exporter that sends nothing, and tells when it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = threading.Event()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = None, **_: Any
    ) -> MetricExportResult:
        """Note it."""
        self.was_asked.set()
        return MetricExportResult.SUCCESS


def test_reading_that_fails_is_logged_and_the_next_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    registry, exporter = CollectorRegistry(auto_describe=False), Exported()
    registry.register(FailingOnce())
    sender = MetricsSender(exporter, Resource({}), 0.01)
    sender.add(registry)
    assert exporter.was_asked.wait(WAIT_S)
    sender.stop()
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "not sent this time" in record.getMessage()


UNREADABLE = """
import logging
logging.basicConfig(level="DEBUG")
from vitals.otlp import Otlp
Otlp.begun("gateway", has_traces=True, metrics_every_s=None).end(5.0)
"""


def test_sdk_tells_no_header_that_it_cannot_read() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "OTEL_EXPORTER_OTLP_HEADERS": "api-key: GB29"},
    )
    assert "GB29" not in done.stdout + done.stderr
