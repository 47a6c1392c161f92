"""A rejection under `on_reject: rollback`: the run goes on, and its agent undoes what had succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from placet import Denied, Placet, current_call
from placet.models import ToolCall
from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

POLICY = """
policy: own
rules:
  - {id: bookings, match: {tools: [book_flight, book_hotel]}, then: allow}
  - {id: payments, match: {tools: [pay]}, then: hold, hold: {on_reject: rollback}}
  - {id: cancellations, match: {tools: [cancel_flight]}, then: hold}
"""
TOOLS = [{"name": name} for name in ("book_flight", "book_hotel", "pay", "cancel_flight")]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site, POLICY, *TOOLS) as found:
        yield found


def open_holds(tenant: Tenant, tool: str) -> list[Any]:
    return [hold for hold in tenant.rita.get("/holds?status=open").json()["items"] if hold["tool"] == tool]


def decide_next(tenant: Tenant, tool: str, decision: str) -> None:
    """Decide the one hold of a tool, as soon as it is there."""
    (hold,) = wait_for(lambda: open_holds(tenant, tool), lambda holds: len(holds) == 1)
    answer = tenant.rita.post(
        f"/holds/{hold['hold_id']}/decision", {"decision": decision, "digest": hold["digest"]}
    )
    assert answer.status_code == 200, answer.text


def test_rejected_payment_undoes_what_had_succeeded_newest_first_by_calls_that_are_judged(
    tenant: Tenant,
) -> None:
    ran: list[str] = []
    with (
        Placet(tenant.site.url, token=tenant.bot.token, agent="bot") as placet,
        placet.execution() as run,
        ThreadPoolExecutor(2) as people,
    ):

        @run.gated
        def book_flight(number: str) -> str:
            ran.append(f"book {number}")
            return f"seat on {number}"

        @run.gated
        def book_hotel(name: str) -> str:
            ran.append(f"book {name}")
            return "room"

        @run.gated(timeout_s=30)
        def cancel_flight(seat: str) -> str:
            ran.append(f"cancel {seat} by {current_call().tool}")
            return "cancelled"

        @run.gated(timeout_s=30)
        def pay(amount: float) -> None:
            ran.append("pay")

        book_flight("LH1")
        book_hotel("Ritz")
        book_flight("LH2")
        rejecting = people.submit(decide_next, tenant, "pay", "reject")
        with pytest.raises(Denied) as denied:
            pay(900.0)
        rejecting.result()

        def approve_both() -> None:
            for _ in range(2):
                decide_next(tenant, "cancel_flight", "approve")

        approving = people.submit(approve_both)

        def cancel(call: ToolCall) -> str:
            return cancel_flight(call.output)

        undone = run.roll_back(denied.value, {"book_flight": cancel})
        approving.result()

    assert [(each.call.tool, each.done) for each in undone] == [
        ("book_flight", True),
        ("book_hotel", False),
        ("book_flight", True),
    ]
    assert ran[3:] == ["cancel seat on LH2 by cancel_flight", "cancel seat on LH1 by cancel_flight"]
    assert tenant.admin.get(f"/executions/{run.id}").json()["state"] == "completed"
    actions = [row["action"] for row in tenant.admin.get("/audit").json()["items"]]
    assert "rollback" in actions
