"""A process that is frozen, not dead: readiness, status, components and metrics say so within five seconds."""

from __future__ import annotations

import os
import signal
from functools import partial

import httpx
import pytest

from tests.integration.frozen import (
    TOLD_WITHIN_S,
    component,
    frozen,
    metric,
    readiness,
    status_of,
    told_by_status,
    until_told,
    until_well,
)
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.mark.parametrize("name", ["decider", "projector"])
def test_case_39_frozen_role_is_told_everywhere_within_five_seconds(site: Site, name: str) -> None:
    until_well(site)
    with frozen(site, name) as since:
        until_told(since, lambda: readiness(site)[0] == 503)
        until_told(since, lambda: told_by_status(site, name))
        until_told(since, lambda: component(site, name)["state"] == "silent")
        until_told(since, lambda: metric(site, "placet_ready") == 0.0)
        labels = f'{{name="{name}",role="{name}"}}'
        until_told(since, lambda: metric(site, f"placet_component_ready{labels}") == 0.0)
        _, body = readiness(site)
        assert any(f"{name} on " in text and "silent" in text for text in body["problems"]), body
        # The gateway itself is as well as before: a load balancer has no reason to take it away.
        assert httpx.get(f"{site.url}/readyz?part=gateway", timeout=TOLD_WITHIN_S).status_code == 200
    until_well(site)


def test_case_39_frozen_trust_is_told_and_keeps_nobody_from_deciding(site: Site) -> None:
    until_well(site)
    with frozen(site, "trust") as since:
        until_told(since, lambda: any("trust on " in text for text in readiness(site)[1]["warnings"]))
        until_told(since, lambda: told_by_status(site, "trust"))
        until_told(since, lambda: component(site, "trust")["state"] == "silent")
        assert readiness(site)[0] == 200
    until_well(site)


def test_case_39_frozen_broker_is_told_everywhere_within_five_seconds(site: Site) -> None:
    until_well(site)
    with frozen(site, "kafka") as since:
        _, body = until_told(since, lambda: found if (found := readiness(site))[0] == 503 else None)
        assert any("Kafka has not answered for" in text for text in body["problems"]), body
        until_told(since, lambda: told_by_status(site, "kafka"))
        until_told(since, lambda: metric(site, "placet_ready") == 0.0)
        assert metric(site, "placet_kafka_age_seconds") > 3
        stalled = {part.name: part.state for part in status_of(site).components if part.name != "kafka"}
        assert set(stalled.values()) == {"stalled"}, stalled
    until_well(site)


def test_case_39_frozen_broker_is_a_component_that_cannot_be_reached(site: Site) -> None:
    until_well(site)
    with frozen(site, "kafka") as since:
        until_told(since, lambda: component(site, "kafka")["state"] == "unreachable")
    until_well(site)


def test_frozen_supervisor_is_told_by_the_status_and_the_doctor(site: Site) -> None:
    until_well(site)
    pid = status_of(site).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(site.stack.status, lambda found: "is frozen" in found["message"])
        said = site.stack.placet("status")
        assert (said.returncode, f"the supervisor (process {pid}) is frozen" in said.stdout) == (3, True), (
            said
        )
        examined = site.stack.placet("doctor")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert f"kill -CONT {pid}" in examined.stdout
    assert examined.returncode == 1
    until_well(site)


def test_case_39_frozen_gateway_is_told_by_the_status_and_answers_no_probe(site: Site) -> None:
    until_well(site)
    with frozen(site, "gateway") as since:
        until_told(since, lambda: told_by_status(site, "gateway"))
        with pytest.raises(httpx.TimeoutException):
            httpx.get(f"{site.url}/readyz", timeout=1.0)
    until_well(site)


def test_case_39_frozen_role_answers_no_probe_and_is_ready_again_afterwards(site: Site) -> None:
    until_well(site)
    address = site.stack.components()["decider"]["address"]
    assert httpx.get(f"{address}/readyz", timeout=2.0).json() == {"status": "ready", "problems": []}
    assert httpx.get(f"{address}/healthz", timeout=2.0).status_code == 200
    with frozen(site, "decider"), pytest.raises(httpx.TimeoutException):
        httpx.get(f"{address}/readyz", timeout=1.0)
    until_well(site)


def test_roles_tell_prometheus_what_they_do(site: Site) -> None:
    until_well(site)
    wanted = {
        "decider": (
            "placet_decider_commands_total",
            "placet_decider_recovery_seconds_count",
            "placet_decider_term",
        ),
        "projector": ("placet_projector_transaction_seconds_count", "placet_projector_records_total"),
        "trust": ("placet_trust_facts_total",),
    }
    parts = site.stack.components()
    for name, metrics in wanted.items():
        address = parts[name]["address"]
        labels = f'{{name="{name}",role="{name}"}}'
        caught_up = f"placet_role_lag_records{labels} 0.0"
        # Trust fetches by the quarter of a second, so it may be behind for a moment.
        text = wait_for(partial(_metrics, address), partial(_has, caught_up))
        for metric_name in (*metrics, f"placet_role_ready{labels} 1.0", "process_cpu_seconds_total"):
            assert metric_name in text, (name, metric_name)


def _has(part: str, text: str) -> bool:
    return part in text


def _metrics(address: str) -> str:
    return httpx.get(f"{address}/metrics", timeout=5.0).text
