"""The alerts: rules that Prometheus takes, on metrics that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.metrics import Metrics
from projections.meters import Meters as ProjectorMeters
from services.processors.meters import TrustMeters
from services.processors.notifications.meters import NotifierMeters
from services.runtime.meters import Meters as DeciderMeters
from vitals.metrics import role_registry
from vitals.process_status import ProcessStatus

RULES = Path(__file__).parents[2] / "ops" / "prometheus" / "placet.rules.yml"
SUFFIX = re.compile(r"_(total|bucket|count|sum|created)$")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def known() -> set[str]:
    """Every metric of every role, without the endings of its samples."""
    registry = role_registry(ProcessStatus("decider", "decider"))
    for meters in (DeciderMeters, ProjectorMeters, TrustMeters, NotifierMeters):
        meters(registry)
    return {family.name for each in (registry, Metrics().registry) for family in each.collect()} | {
        # Told only once something is known of it.
        "placet_role_lag_records",
        "placet_role_kafka_age_seconds",
    }


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alert_is_on_metrics_that_there_are_and_says_what_to_do(rule: dict[str, Any]) -> None:
    names = {SUFFIX.sub("", name) for name in re.findall(r"placet_[a-z_]+", rule["expr"])}
    assert names
    assert names - known() == set()
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert {"summary", "action"} <= set(rule["annotations"])


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("promtool") or str(RULES.parents[2] / ".venv" / "bin" / "promtool")
    return subprocess.run([found, *arguments], capture_output=True, text=True, timeout=60)


def test_rules_are_taken_by_prometheus_itself() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stderr


def test_alerts_on_counters_tell_the_first_of_what_they_count_and_not_what_is_long_past() -> None:
    done = promtool("test", "rules", str(Path(__file__).with_name("placet.rules.test.yml")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_gateway_that_kafka_never_answered_does_not_say_that_it_just_did() -> None:
    metrics, status = Metrics(), ProcessStatus("gateway", "gateway")
    metrics.observe_processes([], status.heartbeat(), is_ready=False)
    assert "placet_kafka_age_seconds +Inf" in metrics.text().decode()
    status.acknowledged()
    metrics.observe_processes([], status.heartbeat(), is_ready=False)
    assert "placet_kafka_age_seconds 0.0" in metrics.text().decode()
