"""A whole stack with a notifier: a link shows a hold and decides nothing, and what nobody took is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.runtime.meters import WriterEnd
from tests.integration.doors import Tenant, new_tenant
from tests.integration.frozen import component, frozen, readiness, told_by_status, until_told, until_well
from tests.integration.site import Site
from tests.processors.notifications.receiver import SECRET, Receiver, receiving
from tests.servers.stack import running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]
# What mail programs, chat programs and browsers do with a link before, or without, anybody opening it.
PREFETCHES: tuple[tuple[str, dict[str, str]], ...] = (
    ("GET", {}),
    ("HEAD", {}),
    ("GET", {"Purpose": "prefetch"}),
    ("GET", {"Sec-Purpose": "prefetch;prerender"}),
    ("OPTIONS", {}),
    ("GET", {"User-Agent": "Slackbot-LinkExpanding 1.0"}),
)


@dataclass(frozen=True)
class Notified:
    """A stack, and those whom its notifier tells: one listens, one refuses."""

    site: Site
    listens: Receiver
    refuses: Receiver

    def messages(self, hold_id: str) -> list[dict[str, Any]]:
        return [found.body for found in self.listens.taken if found.body.get("hold_id") == hold_id]


@pytest.fixture(scope="module")
def notified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notified]:
    directory = tmp_path_factory.mktemp("notified")
    refusing = Receiver(answer=lambda _: (410, {}))
    with receiving() as listens, receiving(refusing) as refuses:
        file = write(directory, listens.url, refuses.url)
        arguments = ("--partitions", "1", "--notifications", str(file))
        with running_stack(directory / "data", *arguments) as stack:
            status = stack.status()
            assert {part["name"]: part["state"] for part in status["components"]}["notifier"] == "ready"
            yield Notified(Site(stack, status["url"], "", ""), listens, refuses)


@pytest.fixture
def tenant(notified: Notified) -> Iterator[Tenant]:
    with new_tenant(notified.site) as found:
        yield found


def write(directory: Path, *urls: str) -> Path:
    (directory / "hook.secret").write_text(SECRET)
    events = ["hold_opened", "hold_resolved"]
    notifications = [
        {
            "id": f"n{number}",
            "when": {"events": events},
            "to": [{"webhook": {"url": url, "secret_file": "hook.secret"}}],
        }
        for number, url in enumerate(urls)
    ]
    file = directory / "notifications.yaml"
    file.write_text(json.dumps({"notifications": notifications}))
    return file


def test_link_followed_by_anything_shows_or_refuses_and_decides_nothing(
    notified: Notified, tenant: Tenant
) -> None:
    _, call = tenant.held()
    hold_id = call["hold_id"]
    (message,) = wait_for(lambda: notified.messages(hold_id), lambda found: len(found) == 1)
    link = message["link"]
    assert link == f"{notified.site.url}/holds/{hold_id}"
    assert "amount" not in str(message)
    with httpx.Client(timeout=10) as client:
        for method, headers in PREFETCHES:
            followed = client.request(method, link, headers=headers)
            assert followed.status_code == (200 if method in ("GET", "HEAD") else 405)
            assert method == "GET" or "<form" not in followed.text
            assert hold_id not in followed.text
        seen = client.post(link, data={"token": tenant.rita.token})
        assert (seen.status_code, seen.headers["cache-control"]) == (200, "no-store")
        assert hold_id in seen.text
        assert "<dt>Status</dt><dd>open</dd>" in seen.text
    assert tenant.decide(call).status_code == 200
    assert notified.messages(hold_id)[0]["type"] == "hold_opened"
    ends = wait_for(lambda: notified.messages(hold_id), lambda found: len(found) == 2)
    assert (ends[1]["type"], ends[1]["detail"]) == ("hold_resolved", "approve")


def test_link_of_another_tenants_hold_shows_nothing(notified: Notified, tenant: Tenant) -> None:
    _, call = tenant.held()
    (message,) = wait_for(lambda: notified.messages(call["hold_id"]), lambda found: len(found) == 1)
    with new_tenant(notified.site) as other, httpx.Client(timeout=10) as client:
        theirs = client.post(message["link"], data={"token": other.rita.token})
        assert theirs.status_code == 404
        assert call["hold_id"] not in theirs.text


def test_undeliverable_message_is_a_dead_letter_that_operators_see(
    notified: Notified, tenant: Tenant
) -> None:
    _, call = tenant.held()
    wait_for(lambda: notified.messages(call["hold_id"]), lambda found: len(found) == 1)
    operator = tenant.caller("olga", "operator")
    letters = wait_for(lambda: operator.get("/dead-letters").json()["items"], lambda found: len(found) == 1)
    assert letters[0]["reason"] == "undeliverable"
    assert letters[0]["detail"] == "n1/1 (webhook): try 1 was the last one (HTTP 410)"
    assert letters[0]["topic"] == "placet.executions"


def test_doctor_on_a_stack_with_notifications_looks_at_the_file(notified: Notified) -> None:
    done = notified.site.stack.placet("doctor", "--json")
    assert '"check": "notifications"' in done.stdout
    assert done.returncode == 0, done.stdout


def test_every_series_of_the_alerts_is_told_before_there_is_anything_to_count(notified: Notified) -> None:
    """A counter that begins with the first loss has not grown: the first loss would be notified to nobody."""
    until_well(notified.site)
    parts = notified.site.stack.components().values()
    addresses = [part["address"] for part in parts if str(part["address"]).startswith("http")]
    told_by_all = "".join(httpx.get(f"{address}/metrics", timeout=5.0).text for address in addresses)
    series = {sample.partition(" ")[0].partition("{")[0] for sample in told_by_all.splitlines()}
    rules = (Path(__file__).parents[2] / "ops" / "prometheus" / "placet.rules.yml").read_text()
    named = set(re.findall(r"placet_(?:[a-z]+_)+[a-z]+|placet_ready", rules))
    assert named - series == set()
    # What listens never loses a message, and nothing ended a writer.
    expected = ['placet_notifier_given_up_total{endpoint="n0/1"} 0.0']
    expected += [f'placet_decider_writer_ends_total{{cause="{cause}"}} 0.0' for cause in WriterEnd]
    assert [line for line in expected if line not in told_by_all] == []


def test_case_39_frozen_notifier_is_told_and_keeps_nobody_from_deciding(notified: Notified) -> None:
    until_well(notified.site)
    with frozen(notified.site, "notifier") as since:
        until_told(
            since, lambda: any("notifier on " in text for text in readiness(notified.site)[1]["warnings"])
        )
        until_told(since, lambda: told_by_status(notified.site, "notifier"))
        until_told(since, lambda: component(notified.site, "notifier")["state"] == "silent")
        assert readiness(notified.site)[0] == 200
    until_well(notified.site)
    address = notified.site.stack.components()["notifier"]["address"]
    assert "placet_notifier_waiting" in httpx.get(f"{address}/metrics", timeout=5.0).text
