"""Trust and the notifier end by `os._exit`: their last spans and metrics are sent before, whoever ends them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from services.processors.errors import EXIT_STALLED
from tests.servers.otlp import collecting

PROGRAM = """
import os, sys
from prometheus_client import CollectorRegistry, Counter
from host.errors import OperatorError
from services.processors.watchdog import Gauge, Lease, Watchdog
from services.processors.worker import end_with
from vitals import tracing
from vitals.logs import log_to_stderr

def refused():
    raise OperatorError("the log is cut")

def stalled():
    watchdog = Watchdog(0.01, Lease(60.0), lambda within_s: {"partition 3": Gauge(5, 1)})
    watchdog.start()
    watchdog.join()

log_to_stderr("INFO")
with tracing.telemetry("trust", os.environ):
    with tracing.spans.span("count"):
        pass
    registry = CollectorRegistry()
    Counter("placet_counted", "Counted.", registry=registry).inc()
    tracing.also_by_otlp(registry)
    end_with({"stops": lambda: 7, "refused": refused, "stalled": stalled}[sys.argv[1]])
"""


@pytest.mark.parametrize(("how", "code"), [("stops", 7), ("refused", 3), ("stalled", EXIT_STALLED)])
def test_processor_that_ends_sends_its_last_spans_and_metrics(how: str, code: int) -> None:
    with collecting() as collector:
        # Sent at the end alone.
        later = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, how],
            capture_output=True,
            text=True,
            timeout=120,
            env={"PYTHONPATH": ":".join(sys.path), **collector.environ, **later},
        )
    assert done.returncode == code, done.stderr
    assert [span.name for span in collector.spans] == ["count"]
    assert collector.metrics == {"placet-trust": {"placet_counted"}}


def test_watchdog_ends_a_process_whose_last_spans_cannot_be_sent() -> None:
    failing = (
        "\ndef fail(): raise RuntimeError('can\\'t start new thread')\ntracing.end = fail\nlog_to_stderr"
    )
    program = PROGRAM.replace("\nlog_to_stderr", failing, 1)
    done = subprocess.run(
        [sys.executable, "-c", program, "stalled"],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": ":".join(sys.path), "OTEL_TRACES_EXPORTER": "otlp"},
    )
    assert done.returncode == EXIT_STALLED
    assert "No progress on partition 3" in done.stderr.rstrip("\n").rsplit("\n", 1)[1]
