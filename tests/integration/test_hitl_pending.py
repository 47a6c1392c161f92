"""An agent that returns instead of waiting: its code runs again, in another process, once a person has answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from placet import AsyncPlacet, BlockingHITLHandler, HITLHandler, HITLPending, Placet
from placet.execution import AsyncExecution
from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site) as found:
        yield found


class Worker:
    """A web worker's turn: each is a client of its own, as in another process; `ran` are the effects."""

    def __init__(self, tenant: Tenant, run_id: str) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.ran: list[str] = []

    async def turn(self) -> dict[str, Any]:
        async with AsyncPlacet(self.tenant.site.url, token=self.tenant.bot.token, agent="bot") as client:
            try:
                async with client.execution(id=self.run_id, request="Deploy it") as run:
                    return await self._deploy(run)
            except HITLPending as pending:
                return {"status": "waiting_for_human", "request_id": pending.request.request_id}

    async def _deploy(self, run: AsyncExecution) -> dict[str, Any]:
        handler = HITLHandler(run, wait_s=0)

        @run.gated(tool="read_file")
        async def note(text: str) -> str:
            self.ran.append(text)
            return text

        await note("begun")
        where = await handler.request_decision("Where?", ["staging", "production"])
        key = (await handler.request_env_var(["KEY"]))["KEY"]
        await note(f"deployed to {where}")
        run.result = {"where": where, "key": len(key)}
        return {"status": "done", "where": where, "key": key}


def answer(tenant: Tenant, request_id: str, run_id: str, value: Any) -> None:
    hold_id = tenant.rita.get(f"/requests/{request_id}?execution_id={run_id}").json()["hold_id"]
    hold = tenant.rita.get(f"/holds/{hold_id}").json()
    word = {"decision": "respond", "digest": hold["digest"], "value": value}
    assert tenant.rita.post(f"/holds/{hold_id}/decision", word).status_code == 200


async def test_agent_that_returns_goes_on_where_a_person_has_answered(tenant: Tenant) -> None:
    worker = Worker(tenant, "deploy-1")
    first = await worker.turn()
    assert first["status"] == "waiting_for_human"
    assert await worker.turn() == first
    answer(tenant, first["request_id"], worker.run_id, "staging")

    second = await worker.turn()
    assert second["status"] == "waiting_for_human"
    assert second["request_id"] != first["request_id"]
    answer(tenant, second["request_id"], worker.run_id, {"KEY": "sk-1"})

    assert await worker.turn() == {"status": "done", "where": "staging", "key": "sk-1"}
    assert worker.ran == ["begun", "deployed to staging"]
    execution = tenant.rita.get(f"/executions/{worker.run_id}").json()
    assert (execution["state"], execution["result"]) == ("completed", {"where": "staging", "key": 4})


def test_blocking_agent_that_returns_leaves_its_run_open(tenant: Tenant) -> None:
    with Placet(tenant.site.url, token=tenant.bot.token, agent="bot") as client:
        for _ in range(2):
            with pytest.raises(HITLPending) as pending, client.execution(id="deploy-2") as run:
                BlockingHITLHandler(run, wait_s=0).request_clarification("Which?")
        answer(tenant, pending.value.request.request_id, "deploy-2", "this")
        with client.execution(id="deploy-2") as run:
            assert BlockingHITLHandler(run, wait_s=0).request_clarification("Which?") == "this"


async def test_question_outside_a_run_is_taken_up_by_its_id(tenant: Tenant) -> None:
    async with AsyncPlacet(tenant.site.url, token=tenant.bot.token, agent="bot") as client:
        with pytest.raises(HITLPending) as pending:
            await HITLHandler(client, wait_s=0, remind_after_seconds=60).request_env_var(["KEY"])
        request = pending.value.request
        assert request.raw["fields"] == ["KEY"]
        answer(tenant, request.request_id, request.execution_id, {"KEY": "sk-1"})
        found = await client.requests.wait(request)
        assert await client.requests.take_secrets(found) == {"KEY": "sk-1"}
