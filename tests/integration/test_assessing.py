"""Calls assessed on a running stack: what is said of a call before it is proposed is what its proposal then gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from placet import AdaptiveApprovalService, NotAuthorised, Placet
from tests.integration.doors import Tenant, fresh, new_tenant
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

MAIL = {
    "name": "send_mail",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
READ = {"name": "look_up", "annotations": {"readOnlyHint": True}}
RULES = """
policy: own
rules:
  - {id: reads, match: {tools: [look_up]}, then: allow}
  - {id: bans, match: {tools: [send_mail]}, when: 'args.to == "nobody@example.com"', then: deny}
  - {id: mails, match: {tools: [send_mail]}, then: hold}
adaptive: {sample_rate: 0}
"""
KNOWN, OTHER = {"to": "ann@example.com"}, {"to": "eve@example.com"}


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, RULES, MAIL, READ) as found:
        yield found


def mail(**arguments: str) -> dict[str, Any]:
    return {"agent": "bot", "tool": "send_mail", "arguments": arguments}


def proposed(tenant: Tenant, execution_id: str, arguments: dict[str, str]) -> Any:
    call = tenant.propose(execution_id, "send_mail", arguments, fresh("mail"))
    if call["status"] == "held":
        assert tenant.decide(call).status_code == 200
    return call


def test_assessment_says_what_the_proposal_then_gets(tenant: Tenant, site: Site) -> None:
    execution_id = tenant.execution()
    with Placet(site.url, token=tenant.token("rita", "reviewer")) as client:
        service = AdaptiveApprovalService(client)
        assert service.should_require_approval(mail(**KNOWN))
        wait_for(lambda: proposed(tenant, execution_id, KNOWN), lambda call: call["status"] == "released")
        wait_for(lambda: service.should_require_approval(mail(**KNOWN)), lambda required: not required)
        assert proposed(tenant, execution_id, KNOWN)["status"] == "released"
        assert service.calculate_agent_trust_score("bot") > 0.8

        found = client.trust.assess("bot", [_call(KNOWN), _call(OTHER)])
        other = proposed(tenant, execution_id, OTHER)

        assert [call.requires_approval for call in found.calls] == [False, True]
        assert other["status"] == "held"
        assert found.calls[1].history == other["verdict"]["history"]
        assert found.calls[1].adaptive is not None
        assert found.calls[1].adaptive.why == other["verdict"]["adaptive"]["why"]
        assert "novel" in found.risk.parts
        # The caller's own numbers only ask for more.
        assert service.should_require_approval(mail(**KNOWN), 0.1)
        assert service.should_require_approval(mail(**KNOWN), 1.0, "high")


def _call(arguments: dict[str, str], tool: str = "send_mail") -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def test_denied_and_misfitting_calls_and_unknown_agents_need_more(tenant: Tenant, site: Site) -> None:
    with Placet(site.url, token=tenant.token("rita", "reviewer")) as client:
        banned, misfit, read, unknown = client.trust.assess(
            "stranger",
            [_call({"to": "nobody@example.com"}), _call({}), _call({}, "look_up"), _call({}, "format_disk")],
        ).calls

        assert (banned.effect, banned.requires_approval) == ("deny", True)
        assert misfit.misfits == (misfit.misfit,)
        assert [call.is_published for call in (banned, misfit, read, unknown)] == [True, True, True, False]
        assert not client.trust.assess("stranger").is_known
        assert client.trust.assess("bot").is_known
        assert misfit.requires_approval
        assert (read.effect, read.requires_approval) == ("allow", False)
        assert (unknown.reason, unknown.requires_approval) == ("unknown_tool", True)
        service = AdaptiveApprovalService(client, agent="stranger")
        assert service.calculate_task_risk_level("Look it up", {"tools": ["look_up"]}) == "low"
        assert (
            service.calculate_task_risk_level("Look it up, and delete and refund it", {"tools": ["look_up"]})
            != "low"
        )
        assert service.should_require_approval({"steps": [_call({}, "look_up"), _call(KNOWN)]})


def test_assessment_is_for_those_who_may_read_the_project(tenant: Tenant, site: Site) -> None:
    body = {"calls": [_call(KNOWN)]}

    assert tenant.bot.post("/agents/bot/assess", body).status_code == 403
    with (
        Placet(site.url, token=tenant.token("bot", "agent", agent="bot")) as client,
        pytest.raises(NotAuthorised),
    ):
        AdaptiveApprovalService(client).should_require_approval(mail(**KNOWN))
    before = tenant.rita.get("/agents/bot/trust/classes").json()["classes"]
    assert tenant.rita.post("/agents/bot/assess", body).status_code == 200
    assert tenant.rita.get("/agents/bot/trust/classes").json()["classes"] == before


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"calls": [{"tool": "send_mail"}] * 51}, 422),
        ({"calls": [{"tool": "send_mail", "arguments": [1]}]}, 422),
        ({"calls": [{"arguments": {}}]}, 422),
        ({"call": []}, 422),
        ({"task_description": "x" * 10_001}, 422),
        ({"calls": [{"tool": "send_mail", "arguments": {"to": "x" * 300_000}}]}, 413),
    ],
    ids=["too many", "no object", "no tool", "misspelt", "long text", "large"],
)
def test_question_that_cannot_be_meant_is_refused(tenant: Tenant, body: dict[str, Any], code: int) -> None:
    assert tenant.rita.post("/agents/bot/assess", body).status_code == code
