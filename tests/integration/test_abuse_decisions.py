"""Cases 1 to 5 of the abuse list: what a decision binds, who wins, and what comes too late."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from tests.integration.doors import Caller, Tenant, fresh, new_tenant, refused
from tests.integration.site import PAY, READ, Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

BRIEF = {"name": "send_brief", "annotations": {"destructiveHint": True}}
WIPE = {"name": "wipe_disk", "annotations": {"destructiveHint": True}}
POLICY = """
policy: own
rules:
  - {id: brief, match: {tools: [send_brief]}, then: hold, hold: {timeout_seconds: 1}}
  - {id: payments, match: {tools: [send_money, wipe_disk]}, then: hold}
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
"""
STRICTER = POLICY.replace("then: hold}", "then: hold, hold: {roles: [treasurer]}}")


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, PAY, READ, BRIEF, WIPE) as found:
        yield found


def approved(tenant: Tenant, tool: str = "send_money") -> tuple[str, Any]:
    execution_id, call = tenant.held(tool)
    assert tenant.decide(call).status_code == 200
    return execution_id, call


def together(callers: list[Caller], path: str, bodies: list[Any]) -> list[httpx.Response]:
    """Send one request of each caller at the same moment."""
    start = Barrier(len(callers))

    def send(caller: Caller, body: Any) -> httpx.Response:
        start.wait(10)
        return caller.post(path, body)

    with ThreadPoolExecutor(len(callers)) as pool:
        return list(pool.map(send, callers, bodies))


def test_case_01_arguments_changed_after_approval_do_not_run(tenant: Tenant) -> None:
    execution_id, call = approved(tenant)
    other = tenant.propose(execution_id, "send_money", {"to": "GB29", "amount": 5_000}, "other")
    again = {"call_id": "c1", "tool": "send_money", "arguments": {"to": "GB29", "amount": 5_000}}

    reused = tenant.bot.post(f"/executions/{execution_id}/tool-calls", again)
    consumed = tenant.consume(execution_id, other["digest"])

    assert refused(reused) == (409, "id_reused")
    assert refused(consumed) == (409, "digest_mismatch")
    assert "GrantConsumed" not in tenant.events(execution_id)
    assert tenant.call(execution_id)["digest"] == call["digest"]


def test_case_01_tool_definition_changed_after_approval_is_asked_again(tenant: Tenant) -> None:
    execution_id, call = approved(tenant, "wipe_disk")
    tenant.admin.ask("PUT", "/tools/wipe_disk", WIPE | {"description": "now without asking for the disk"})

    assert refused(tenant.consume(execution_id, call["digest"])) == (409, "not_released")

    now = tenant.call(execution_id)
    assert (now["status"], now["revision"]) == ("held", call["revision"] + 1)
    assert now["digest"] != call["digest"]
    assert now["hold_id"] != call["hold_id"]
    assert "GrantConsumed" not in tenant.events(execution_id)
    assert tenant.decide(now).status_code == 200
    assert refused(tenant.consume(execution_id, call["digest"])) == (409, "digest_mismatch")
    assert tenant.consume(execution_id, now["digest"]).status_code == 200


def test_case_01_policy_stricter_after_approval_is_asked_again(site: Site) -> None:
    with new_tenant(site, POLICY) as tenant:
        execution_id, call = approved(tenant)
        tenant.publish(STRICTER)

        assert refused(tenant.consume(execution_id, call["digest"])) == (409, "not_released")

        now = tenant.call(execution_id)
        assert now["status"] == "held"
        assert "GrantConsumed" not in tenant.events(execution_id)
        assert refused(tenant.decide(now)) == (403, "forbidden_role")
        assert tenant.decide(now, by=tenant.caller("tessa", "treasurer")).status_code == 200
        assert tenant.consume(execution_id, now["digest"]).status_code == 200


def test_case_02_parallel_calls_each_get_the_decision_on_their_own_digest(tenant: Tenant) -> None:
    execution_id = tenant.execution()
    path = f"/executions/{execution_id}/tool-calls?wait=0"
    bodies = [
        {"call_id": name, "tool": "send_money", "arguments": {"to": name, "amount": amount}}
        for name, amount in (("one", 1), ("two", 2))
    ]
    one, two = (answer.json() for answer in together([tenant.bot, tenant.bot], path, bodies))

    swapped = tenant.decide(one | {"digest": two["digest"]})
    assert tenant.decide(two).status_code == 200
    assert tenant.decide(one, "reject", feedback="not this one").status_code == 200

    assert refused(swapped) == (409, "digest_mismatch")
    assert tenant.call(execution_id, "one")["status"] == "denied"
    assert tenant.call(execution_id, "two")["approved_arguments"] == {"to": "two", "amount": 2}
    assert refused(tenant.consume(execution_id, one["digest"], "one")) == (409, "not_released")
    assert refused(tenant.consume(execution_id, one["digest"], "two")) == (409, "digest_mismatch")
    assert tenant.consume(execution_id, two["digest"], "two").status_code == 200


@pytest.mark.parametrize("other", ["approve", "reject"])
def test_case_03_two_approvers_at_once_one_wins_the_other_gets_409_with_the_winner(
    tenant: Tenant, other: str
) -> None:
    execution_id, call = tenant.held()
    path = f"/holds/{call['hold_id']}/decision"
    bodies = [{"decision": word, "digest": call["digest"]} for word in ("approve", other)]

    won, lost = sorted(together([tenant.rita, tenant.otto], path, bodies), key=lambda a: a.status_code)

    assert won.status_code == 200
    assert refused(lost) == (409, "already_decided")
    assert lost.json()["winning_decision_id"] == won.json()["decision_id"]
    types = tenant.events(execution_id)
    assert types.count("DecisionRecorded") == types.count("DecisionRefused") == 1
    assert types.count("ToolCallReleased") + types.count("ToolCallDenied") == 1
    assert tenant.call(execution_id)["decision"]["decision_id"] == won.json()["decision_id"]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "once"}], ids=["same body", "same key"])
def test_case_04_decision_replayed_gets_the_same_answer_and_one_effect(
    tenant: Tenant, headers: dict[str, str]
) -> None:
    execution_id, call = tenant.held()
    headers = {name: fresh(value) for name, value in headers.items()}
    path, body = f"/holds/{call['hold_id']}/decision", {"decision": "approve", "digest": call["digest"]}

    first = tenant.rita.post(path, body, headers=headers)
    second = tenant.rita.post(path, body, headers=headers)
    assert tenant.consume(execution_id, call["digest"], attempt_id="mine").status_code == 200
    after = tenant.rita.post(path, body, headers=headers)
    again = tenant.consume(execution_id, call["digest"], attempt_id="mine")
    another = tenant.consume(execution_id, call["digest"], attempt_id="another")

    assert [answer.status_code for answer in (first, second, after, again)] == [200] * 4
    assert {answer.json()["decision_id"] for answer in (first, second, after)} == {
        first.json()["decision_id"]
    }
    assert refused(another) == (409, "already_consumed")
    types = tenant.events(execution_id)
    assert [types.count(name) for name in ("DecisionRecorded", "ToolCallReleased", "GrantConsumed")] == [
        1
    ] * 3


def test_case_05_approval_after_expiry_is_409_and_releases_nothing(tenant: Tenant) -> None:
    execution_id, call = tenant.held("send_brief")
    wait_for(lambda: tenant.call(execution_id)["status"], lambda status: status == "expired")

    assert refused(tenant.decide(call)) == (409, "expired")
    assert refused(tenant.consume(execution_id, call["digest"])) == (409, "expired")
    assert not {"ToolCallReleased", "GrantConsumed"} & set(tenant.events(execution_id))


def test_case_05_approval_after_cancel_is_409_and_releases_nothing(tenant: Tenant) -> None:
    execution_id, call = tenant.held()
    assert tenant.admin.post(f"/executions/{execution_id}/cancel").status_code == 200

    assert refused(tenant.decide(call)) == (409, "execution_closed")
    assert tenant.consume(execution_id, call["digest"]).status_code == 409
    assert tenant.call(execution_id)["status"] == "cancelled"
    assert not {"ToolCallReleased", "GrantConsumed"} & set(tenant.events(execution_id))
