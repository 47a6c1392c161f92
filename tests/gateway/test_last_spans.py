"""A gateway that hangs is ended by force: its last spans and metrics are sent before, if that is quick."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway import main
from tests.servers.otlp import Collector, collecting

# The main thread hangs, as with a thread of which Python waits for the end.
PROGRAM = """
import os, sys, threading
from pathlib import Path
from types import SimpleNamespace
from prometheus_client import CollectorRegistry, Counter
from gateway import main
from vitals import tracing
from vitals.logs import log_to_stderr

main.END_WITHIN_S = 0.1
log_to_stderr("INFO")
with tracing.telemetry("gateway", os.environ):
    with tracing.spans.span("last"):
        pass
    registry = CollectorRegistry()
    Counter("placet_counted", "Counted.", registry=registry).inc()
    tracing.also_by_otlp(registry)
    BEFORE
    main._stop(SimpleNamespace(stop=lambda: None), SimpleNamespace(status_file=Path(sys.argv[1])))
    threading.Event().wait()
"""


def ended(collector: Collector, status: Path, before: str = "pass") -> subprocess.CompletedProcess[str]:
    """A gateway that was asked to stop, once it has ended."""
    status.write_text("")
    # Sent at the end alone.
    later = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("BEFORE", before), str(status)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": ":".join(sys.path), **collector.environ, **later},
    )


@contextmanager
def holding(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within this context the collector answers nobody."""
    goes_on = threading.Event()
    take = collector.take

    def late(path: str, body: bytes) -> bytes:
        goes_on.wait()
        return take(path, body)

    monkeypatch.setattr(collector, "take", late)
    try:
        yield
    finally:
        goes_on.set()


def test_gateway_that_is_ended_by_force_sends_its_last_spans_and_metrics(tmp_path: Path) -> None:
    with collecting() as collector:
        # A busy machine needs more than the gateway gives the collector.
        done = ended(collector, tmp_path / "gateway.json", "main.LAST_SPANS_WITHIN_S = 60")
    assert done.returncode == 0, done.stderr
    assert [span.name for span in collector.spans] == ["last"]
    assert collector.metrics == {"placet-gateway": {"placet_counted"}}
    assert not (tmp_path / "gateway.json").exists()


def test_collector_that_does_not_answer_keeps_no_gateway_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector, holding(collector, monkeypatch):
        done = ended(collector, tmp_path / "gateway.json")
        assert done.returncode == 0, done.stderr
        assert "did not end within" in done.stderr
    assert not (tmp_path / "gateway.json").exists()


def test_gateway_ends_though_its_last_spans_cannot_be_sent(tmp_path: Path) -> None:
    failing = "tracing.end = lambda within_s: (_ for _ in ()).throw(RuntimeError('can\\'t start new thread'))"
    with collecting() as collector:
        done = ended(collector, tmp_path / "gateway.json", failing)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "gateway.json").exists()


@pytest.mark.parametrize("fault", ["threading.Event().wait()", "raise OSError('no such disk')"])
def test_gateway_ends_though_the_disk_of_its_status_hangs_or_fails(tmp_path: Path, fault: str) -> None:
    failing = f"""
    def unlink(self, missing_ok):
        {fault}
    Path.unlink = unlink
"""
    with collecting() as collector:
        done = ended(collector, tmp_path / "gateway.json", failing.strip())
    assert done.returncode == 0, done.stderr


def test_stop_that_is_promised_within_5_s_has_time_for_the_last_spans() -> None:
    assert main.END_WITHIN_S + main.LAST_SPANS_WITHIN_S + main.LEAVE_WITHIN_S < 5
