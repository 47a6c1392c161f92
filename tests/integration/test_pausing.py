"""A run that is paused between an approval and its consumption: the agent waits for the resume, and runs once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from placet import Placet, StillHeld
from placet.transport.auto import Mode
from tests.clients.test_node_agent import AGENT as NODE_AGENT
from tests.clients.tools import start_tool
from tests.integration.doors import Tenant, fresh, new_tenant
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: own
rules:
  - {id: payments, match: {tools: ["*"]}, then: hold}
"""


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, {"name": "send_money"}) as found:
        yield found


def hold_of(tenant: Tenant, execution_id: str) -> Any:
    def found() -> list[Any]:
        items = tenant.rita.get("/holds?status=open").json()["items"]
        return [hold for hold in items if hold["execution_id"] == execution_id]

    (hold,) = wait_for(found, lambda holds: len(holds) == 1)
    return hold


def steer(tenant: Tenant, execution_id: str, verb: str) -> None:
    answer = tenant.rita.post(f"/executions/{execution_id}/{verb}", {})
    assert answer.status_code == 200, answer.text


def refusals(tenant: Tenant, execution_id: str) -> int:
    """How often a consumption in an execution was refused, according to the log."""
    events = tenant.admin.get(f"/executions/{execution_id}/events").json()["items"]
    return sum(event["type"] == "CommandRefused" and "not_released" in str(event) for event in events)


def pause_and_approve(tenant: Tenant, execution_id: str) -> None:
    """Pause a run, approve its call, and wait until its agent was told that it cannot run it now."""
    hold = hold_of(tenant, execution_id)
    steer(tenant, execution_id, "pause")
    word = {"decision": "approve", "digest": hold["digest"]}
    answer = tenant.rita.post(f"/holds/{hold['hold_id']}/decision", word)
    assert answer.status_code == 200, answer.text
    wait_for(lambda: refusals(tenant, execution_id), lambda count: count > 0)


@pytest.mark.parametrize("transport", ["auto", "rest"])
def test_call_that_is_approved_while_its_run_is_paused_runs_once_after_the_resume(
    tenant: Tenant, transport: Mode
) -> None:
    ran: list[float] = []
    with (
        Placet(tenant.site.url, token=tenant.bot.token, agent="bot", transport=transport) as placet,
        placet.execution() as run,
        ThreadPoolExecutor(1) as agent,
    ):

        @run.gated
        def send_money(amount: float) -> str:
            ran.append(amount)
            return "paid"

        paying = agent.submit(send_money, 98.5)
        pause_and_approve(tenant, run.id)
        assert not ran
        steer(tenant, run.id, "resume")
        assert paying.result(30) == "paid"

    assert ran == [98.5]
    assert refusals(tenant, run.id) == 1, "the agent waits, and does not ask again and again"
    assert tenant.admin.get(f"/executions/{run.id}").json()["state"] == "completed"


def test_wait_for_a_resume_that_takes_too_long_leaves_the_run_open_for_a_restart(tenant: Tenant) -> None:
    ran: list[float] = []

    def pay(execution_id: str, timeout_s: float | None) -> str:
        with (
            Placet(tenant.site.url, token=tenant.bot.token, agent="bot") as placet,
            placet.execution(id=execution_id) as run,
        ):

            @run.gated(timeout_s=timeout_s)
            def send_money(amount: float) -> str:
                ran.append(amount)
                return "paid"

            return send_money(98.5)

    execution_id = fresh("paused")
    with ThreadPoolExecutor(1) as agent:
        paying = agent.submit(pay, execution_id, 6.0)
        pause_and_approve(tenant, execution_id)
        with pytest.raises(StillHeld, match="its execution is paused"):
            paying.result(30)
        assert tenant.admin.get(f"/executions/{execution_id}").json()["state"] == "paused"
        again = agent.submit(pay, execution_id, None)
        wait_for(lambda: refusals(tenant, execution_id), lambda count: count == 2)
        steer(tenant, execution_id, "resume")
        assert again.result(30) == "paid"
    assert ran == [98.5]


def test_node_agent_waits_for_the_resume_of_its_run(tenant: Tenant) -> None:
    with start_tool("node", NODE_AGENT, PLACET_URL=tenant.site.url, PLACET_TOKEN=tenant.bot.token) as agent:
        (run,) = wait_for(
            lambda: tenant.rita.get("/executions?state=waiting_approval").json()["items"],
            lambda found: len(found) == 1,
        )
        pause_and_approve(tenant, run["execution_id"])
        steer(tenant, run["execution_id"], "resume")
        said, wrong = agent.communicate(timeout=60)
    assert (agent.returncode, wrong) == (0, "")
    assert said.splitlines()[-1].startswith("pay ")
