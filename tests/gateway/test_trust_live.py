"""What the gateway tells of the trust in an agent, on a running stack."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import resources as r
from tests.gateway.conftest import Caller, Doors
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_trust_of_an_agent_is_what_was_counted_of_it_by_tool(doors: Doors, bot: Caller, anna: Caller) -> None:
    execution_id = bot.execution()
    _run(bot, execution_id, bot.propose(execution_id, "read_file"), "succeeded")
    held = bot.propose(execution_id)
    decision = {"decision": "reject", "digest": held["digest"]}
    assert anna.post(f"/v1/holds/{held['hold_id']}/decision", decision).status_code == 200

    def counted(found: dict[str, Any], tool: str, what: str) -> int:
        return sum(one[what] for one in found["tools"] if one["tool"] == tool)

    # Other tests' calls of these tools may be counted already.
    found = wait_for(
        lambda: anna.get("/v1/agents/billing/trust").json(),
        lambda found: (
            min(counted(found, "read_file", "successes"), counted(found, "send_money", "rejections")) > 0
        ),
    )
    r.AgentTrust.model_validate(found)
    assert found["complete"]
    assert _code(anna.get("/v1/agents/nobody/trust")) == (404, "not_found")
    assert _code(bot.get("/v1/agents/billing/trust")) == (403, "not_authorised")
    assert _code(doors.caller("mallory", "admin", tenant="other").get("/v1/agents/billing/trust"))[0] == 404


def _run(bot: Caller, execution_id: str, call: dict[str, Any], outcome: str) -> None:
    where = f"/v1/executions/{execution_id}/tool-calls/{call['call_id']}"
    grant = {"digest": call["digest"], "attempt_id": "a"}
    assert bot.post(f"{where}/consume", grant).status_code == 200
    assert bot.post(f"{where}/result", {"attempt_id": "a", "outcome": outcome}).status_code == 200


def test_explained_trust_is_only_the_projects_and_of_an_agent_that_is_known(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    held = bot.propose(bot.execution())
    decision = {"decision": "approve", "digest": held["digest"]}
    decided = anna.post(f"/v1/holds/{held['hold_id']}/decision", decision)
    assert decided.status_code == 200

    after = decided.json()["cursor"]
    found = anna.get(f"/v1/agents/billing/trust/classes?tool=send_money&after={after}").json()

    shown = r.ExplainedTrust.model_validate(found)
    assert held["call_id"] in {fact.call_id for one in shown.classes for fact in one.evidence}
    assert {one.tool for one in shown.classes} == {"send_money"}
    assert all(not one.evidence for one in _explained(anna).classes)
    stated = wait_for(
        lambda: anna.get("/v1/agents/billing/trust").json(), lambda one: bool(one.get("complete"))
    )
    assert (stated["complete"], _explained(anna).complete) == (True, True)
    assert _code(anna.get("/v1/agents/nobody/trust/classes")) == (404, "not_found")
    assert _code(bot.get("/v1/agents/billing/trust/classes")) == (403, "not_authorised")
    mallory = doors.caller("mallory", "admin", tenant="other")
    assert _code(mallory.get("/v1/agents/billing/trust/classes"))[0] == 404


def test_explained_trust_is_listed_in_pages(doors: Doors) -> None:
    pager, rita = doors.caller("pager", "agent", agent="pager"), doors.caller("rita", "reviewer")
    after, execution_id = "", pager.execution()
    for amount in (1, 10, 100, 1_000, 10_000):
        held = pager.propose(execution_id, arguments={"amount": amount})
        decision = {"decision": "approve", "digest": held["digest"]}
        after = rita.post(f"/v1/holds/{held['hold_id']}/decision", decision).json()["cursor"]
    path = "/v1/agents/pager/trust/classes"
    whole = rita.get(f"{path}?after={after}").json()
    names = [one["trust_class"] for one in whole["classes"]]
    assert (len(set(names)), whole["next_cursor"]) == (5, None)
    assert names == sorted(names)

    found: list[dict[str, Any]] = []
    query = "limit=2"
    while True:
        page = rita.get(f"{path}?{query}&at={whole['at']}").json()
        r.ExplainedTrust.model_validate(page)
        assert (page["lower_bound"], page["at"]) == (whole["lower_bound"], whole["at"])
        found += page["classes"]
        if page["next_cursor"] is None:
            break
        assert len(page["classes"]) == 2
        query = f"limit=2&cursor={page['next_cursor']}"
    assert found == whole["classes"]
    # The cursor also goes on within one tool's classes, whose facts are listed.
    first = rita.get(f"{path}?limit=1&tool=send_money").json()
    rest = rita.get(f"{path}?tool=send_money&cursor={first['next_cursor']}").json()
    assert [one["trust_class"] for one in first["classes"] + rest["classes"]] == names
    assert all(one["evidence"] for one in first["classes"] + rest["classes"])
    others = rita.get("/v1/executions?limit=1").json()["next_cursor"]
    assert _code(rita.get(f"{path}?cursor={others}")) == (422, "invalid")
    assert _code(rita.get(f"{path}?limit=0")) == (422, "invalid")


def _explained(anna: Caller) -> r.ExplainedTrust:
    return r.ExplainedTrust.model_validate(anna.get("/v1/agents/billing/trust/classes").json())


def test_approval_metrics_of_a_policy_without_the_block_count_nothing(bot: Caller, anna: Caller) -> None:
    bot.propose(bot.execution())

    shown = r.ApprovalMetrics.model_validate(anna.get("/v1/metrics/approval").json())

    assert (shown.held, shown.saved, shown.sample.share, shown.regret.share) == (0, None, None, None)
    # The views may not have the agent yet.
    of_one = wait_for(
        lambda: anna.get("/v1/metrics/approval?agent=billing"), lambda answer: answer.is_success
    )
    assert r.ApprovalMetrics.model_validate(of_one.json()).held == 0
    assert _code(anna.get("/v1/metrics/approval?agent=nobody")) == (404, "not_found")
    assert _code(bot.get("/v1/metrics/approval")) == (403, "not_authorised")
    assert _code(anna.get("/v1/metrics/approval?since=yesterday")) == (422, "invalid")
