"""A role whose variables OpenTelemetry refuses ends with one sentence, as with those that Placet refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops.config import DataDir, StackConfig, save_config


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "256", "OpenTelemetry refuses its variables (OTEL_…): max_export"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0", "OpenTelemetry refuses its variables (OTEL_…): schedule_delay"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "x", "OpenTelemetry refuses its variables (OTEL_…): OTEL_SPAN"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key: GB29", "OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE"),
    ],
)
def test_role_with_variables_that_cannot_be_used_is_one_sentence_and_exit_2(
    tmp_path: Path, name: str, value: str, told: str
) -> None:
    save_config(StackConfig(str(tmp_path), "127.0.0.1:9", False, "", 0, "http://127.0.0.1:0"))
    done = subprocess.run(
        [sys.executable, "-m", "ops.roles", "decider", "--config", str(DataDir(tmp_path).config)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value},
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(told)
    assert done.stderr.endswith(".\n")
    assert "GB29" not in done.stderr
