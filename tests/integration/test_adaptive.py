"""Adaptive approval on a running stack: trust is earned by people's decisions, releases, and is lost at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from placet.cli import run
from placet.cli.trust import at_least
from schemas.adaptive import draw_of
from schemas.trust_score import lower_bound
from tests.integration.doors import Tenant, fresh, new_tenant
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

NOTE = {
    "name": "note",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "urgent": {"type": "boolean"}},
    },
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
RULES = """
policy: own
rules:
  - {id: bans, match: {tools: [note]}, when: 'args.text == "drop"', then: deny}
  - {id: notes, match: {tools: [note]}, then: hold}
"""
ADAPTIVE = RULES + "adaptive: {sample_rate: 0}\n"
SHADOW = RULES + "adaptive: {sample_rate: 1}\n"
# The risk of a write that harms nothing requires 0.8.
ENOUGH = 13
CLASS = "text=text&urgent=false&risk=writes"


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, ADAPTIVE, NOTE) as found:
        yield found


def explained(tenant: Tenant, tool: str | None = None, **more: str) -> Any:
    params = {**({} if tool is None else {"tool": tool}), **more}
    return tenant.rita.get("/agents/bot/trust/classes", params=params).json()


def asked(tenant: Tenant, execution_id: str, name: str, text: str = "hello") -> Any:
    return tenant.propose(execution_id, "note", {"text": text, "urgent": False}, name)


def test_agent_earns_trust_is_released_by_it_and_loses_it(
    tenant: Tenant, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    execution_id = tenant.execution()
    for number in range(ENOUGH):
        call = asked(tenant, execution_id, f"c{number}")
        assert call["status"] == "held", number
        assert call["verdict"]["adaptive"]["result"] == "asked"
        assert tenant.decide(call).status_code == 200

    # As soon as trust has counted them, the next is released; nobody has to wait for a time of its own.
    first = wait_for(lambda: _next(tenant, execution_id), lambda call: call["status"] == "released")
    verdict = first["verdict"]
    assert (verdict["effect"], verdict["reason"]) == ("allow", "trusted")
    assert verdict["trust"]["trust_class"] == CLASS
    bound = verdict["adaptive"]["lower_bound"]
    assert verdict["adaptive"]["required"] == verdict["risk"]["required"] <= bound
    # Anybody can compute it again, from the facts up to the offsets that the verdict cites.
    (found,) = explained(tenant, "note")["classes"]
    assert found["required"] == verdict["adaptive"]["required"]
    through = verdict["trust"]["through"]
    cited = [fact for fact in found["evidence"] if fact["offset"] <= through[str(fact["partition"])]]
    assert {(fact["kind"], *fact["by"]) for fact in cited} == {("approval", "rita")}
    assert (len(cited), bound) == (verdict["trust"]["raising"], lower_bound(len(cited), 0))
    assert verdict["adaptive"]["draw"] == draw_of(
        verdict["adaptive"]["seed"], first["call_id"], first["revision"], first["digest"]
    )

    told = _told(tenant, site, capsys, "trust", "report", "--json")
    counts = json.loads(told)
    assert counts["asked"] >= ENOUGH
    assert (counts["released"], counts["regret"]["released"], counts["regret"]["harmful"]) == (1, 1, 0)
    assert counts["saved"] == round(1 / counts["held"], 6)
    assert "interruptions saved" in _told(tenant, site, capsys, "trust", "report")
    assert asked(tenant, execution_id, "denied", "drop")["status"] == "denied"
    other = tenant.propose(execution_id, "note", {"text": "hello", "urgent": True}, "other-class")
    # Of the class without what was new then, and with it.
    said = re.compile(
        r"\d+ approvals of note are of calls with arguments of other kinds; none is of such a call.*"
    )
    assert said.fullmatch(other["verdict"]["adaptive"]["why"])

    told = _told(tenant, site, capsys, "trust", "explain", "bot", "note")
    assert f"trust is at least {at_least(found['lower_bound'])}" in told
    assert told.count("approval") == len(found["evidence"])


def _told(tenant: Tenant, site: Site, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["--url", site.url, "--token", tenant.token("rita", "reviewer"), *arguments]) == 0
    return capsys.readouterr().out


def _next(tenant: Tenant, execution_id: str) -> Any:
    call = asked(tenant, execution_id, fresh("next"))
    if call["status"] == "held":
        assert tenant.decide(call).status_code == 200
    return call


def test_rejected_sample_stops_releases_with_the_next_verdict(tenant: Tenant) -> None:
    execution_id = tenant.execution()
    wait_for(lambda: _next(tenant, execution_id), lambda call: call["status"] == "released")
    tenant.publish(SHADOW)
    sampled = wait_for(
        lambda: asked(tenant, execution_id, fresh("sample")),
        lambda call: call["verdict"]["adaptive"]["result"] == "sampled",
    )
    assert sampled["status"] == "held"
    tenant.publish(ADAPTIVE)

    assert tenant.decide(sampled, "reject").status_code == 200

    after = asked(tenant, execution_id, "after")
    assert (after["status"], after["verdict"]["adaptive"]["result"]) == ("held", "asked")
    settled = wait_for(
        lambda: explained(tenant, "note")["classes"],
        lambda classes: any(fact["kind"] == "rejection" for one in classes for fact in one["evidence"]),
    )
    lost = next(one for one in settled if one["trust_class"] == CLASS)
    assert (lost["raising"], lost["lowering"]) == (0.0, 1.0)
    before = explained(tenant, "note", at=sampled["proposed_at"])["classes"]
    assert next(one for one in before if one["trust_class"] == CLASS)["raising"] >= ENOUGH


def test_policy_without_the_block_takes_releases_back_that_were_not_used(tenant: Tenant) -> None:
    execution_id = tenant.execution()
    for number in range(40):
        call = asked(tenant, execution_id, f"again{number}")
        if call["status"] == "released":
            break
        assert tenant.decide(call).status_code == 200
    released = wait_for(lambda: _next(tenant, execution_id), lambda call: call["status"] == "released")

    tenant.publish(RULES)

    where = f"/executions/{execution_id}/tool-calls/{released['call_id']}"
    answer = tenant.bot.post(f"{where}/consume", {"digest": released["digest"], "attempt_id": "a"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_released")
    assert tenant.call(execution_id, released["call_id"])["status"] == "held"
    assert asked(tenant, execution_id, "without")["verdict"]["adaptive"] is None
