"""Variables that OpenTelemetry refuses, and first calls of several threads: an agent's call never fails by either."""

from __future__ import annotations

import pytest

from tests.sdk.test_tracing import ONE_SPAN, run

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "256", "max_export_batch_size must be"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0", "schedule_delay_millis must be"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4096", "max_export_batch_size must be"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key: GB29", "OTEL_EXPORTER_OTLP_HEADERS must be"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=b%0aGB29", "OTEL_EXPORTER_OTLP_TRACES_HEADERS must be"),
    ],
)
def test_client_whose_variables_cannot_be_used_warns_once_and_goes_on(
    name: str, value: str, why: str
) -> None:
    done = run(ONE_SPAN.format(before=""), **ENDPOINT, **{name: value})
    assert done.stdout.split()[0] == "False"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"WARNING nothing is traced: {why}")
    assert "GB29" not in line


def test_client_whose_programs_provider_cannot_be_loaded_goes_on() -> None:
    before = "import opentelemetry.sdk.trace"
    done = run(ONE_SPAN.format(before=before), OTEL_PYTHON_TRACER_PROVIDER="absent")
    assert done.stdout.split()[0] == "False"
    assert done.stderr.count("Failed to load configured provider") == 1


AT_ONCE = """
import threading
from placet import tracing
traced, begin = [], threading.Barrier(8)

def go():
    begin.wait()
    with tracing.span("placet.propose", {}) as trace:
        traced.append(bool(trace))

threads = [threading.Thread(target=go) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(traced))
"""


def test_first_calls_of_several_threads_are_all_traced() -> None:
    done = run(AT_ONCE, **ENDPOINT, OTEL_BSP_SCHEDULE_DELAY="600000")
    assert done.stdout.strip() == "8"


WITHIN = """
import logging
from placet import tracing

class Telling(logging.Handler):
    def emit(self, record):
        with tracing.span("placet.propose", {}) as trace:
            print("told", bool(trace))

logging.getLogger("placet").addHandler(Telling())
with tracing.span("placet.propose", {}) as trace:
    print("asked", bool(trace))
"""


def test_handler_of_the_warning_that_calls_placet_waits_for_nothing() -> None:
    done = run(WITHIN, **ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    assert done.stdout.splitlines() == ["told False", "asked False"]
