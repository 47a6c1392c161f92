"""Questions in the words of HITL systems, by an agent with or without a run, answered by people on a real stack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from placet import AsyncPlacet, BlockingHITLHandler, HITLHandler, NotReleased, Permission, Placet, Unanswered
from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import Site
from tests.servers.stack import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.broker]

OPTIONS = [
    {"id": "staging", "label": "Staging", "recommended": True},
    {"id": "production", "label": "Production"},
]


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site) as found:
        yield found


def decide_next(tenant: Tenant, kind: str, **word: Any) -> dict[str, Any]:
    """Decide the one open question of a kind, as soon as it is there."""
    (hold,) = wait_for(
        lambda: tenant.rita.get(f"/holds?status=open&kind={kind}").json()["items"],
        lambda holds: len(holds) == 1,
    )
    answer = tenant.rita.post(f"/holds/{hold['hold_id']}/decision", {"digest": hold["digest"], **word})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = hold
    return found


@pytest.mark.parametrize("in_a_run", [True, False])
async def test_handler_returns_what_a_person_answered(tenant: Tenant, in_a_run: bool) -> None:
    async def answered(asking: Any, kind: str, **word: Any) -> tuple[Any, dict[str, Any]]:
        deciding = asyncio.to_thread(decide_next, tenant, kind, **word)
        answer, hold = await asyncio.gather(asking, deciding)
        return answer, hold

    async with (
        AsyncPlacet(tenant.site.url, token=tenant.bot.token, agent="bot") as client,
        client.execution() as run,
    ):
        handler = HITLHandler(run if in_a_run else client)
        decision, hold = await answered(
            handler.request_decision(
                question="选择部署环境", options=OPTIONS, decision_type="branch", timeout_seconds=300
            ),
            "decision",
            decision="respond",
            value="production",
        )
        assert decision == "production"
        assert (hold["options"], hold["decision_type"]) == (OPTIONS, "branch")
        assert (hold["execution_id"] == run.id) is in_a_run
        several, _ = await answered(
            handler.request_decision("Which?", ["a", "b"], multiple=True, allow_custom=True),
            "decision",
            decision="respond",
            value=["b", "c"],
        )
        assert several == ["b", "c"]
        text, _ = await answered(
            handler.request_clarification("Delete or move?", options=["delete", "move"]),
            "clarification",
            decision="respond",
            value="neither",
        )
        assert text == "neither"
        granted, hold = await answered(
            handler.request_permission(tool="shell", action="rm -rf build", risk="high", remember=True),
            "permission",
            decision="respond",
            value={"granted": True, "remember": True},
        )
        assert granted == Permission(True, remember=True)
        assert hold["asks"]["action"] == "rm -rf build"
        refused, _ = await answered(
            handler.request_permission(action="rm -rf /"), "permission", decision="reject"
        )
        assert not refused
        fields: list[Any] = ["OPENAI_API_KEY", {"name": "REGION", "required": False}]
        variables, _ = await answered(
            handler.request_env_var(fields),
            "env_var",
            decision="respond",
            value={"OPENAI_API_KEY": "sk-1"},
        )
        assert variables == {"OPENAI_API_KEY": "sk-1"}


async def test_question_without_an_answer_says_why(tenant: Tenant) -> None:
    async with (
        AsyncPlacet(tenant.site.url, token=tenant.bot.token, agent="bot") as client,
        client.execution() as run,
    ):
        handler = HITLHandler(run)
        rejecting = asyncio.to_thread(
            decide_next, tenant, "clarification", decision="reject", feedback="ask the user"
        )
        asking = asyncio.ensure_future(handler.request_clarification("Which?"))
        await rejecting
        with pytest.raises(Unanswered, match="rita rejected it: ask the user"):
            await asking
        with pytest.raises(Unanswered, match="nobody answered in time"):
            await handler.request_clarification("Who?", timeout_seconds=0.5)
        default = await handler.request_decision("Where?", [0, 1], default_option=0, timeout_seconds=0.5)
        assert default == 0
        assert await handler.request_permission(action="go", timeout_seconds=0.5) == Permission(False)
        with pytest.raises(NotReleased):
            await handler.request_env_var(["KEY"], timeout_seconds=0.5)


def test_blocking_handler_returns_what_a_person_answered(tenant: Tenant) -> None:
    with (
        Placet(tenant.site.url, token=tenant.bot.token, agent="bot") as client,
        client.execution() as run,
        ThreadPoolExecutor(1) as people,
    ):
        for handler in (BlockingHITLHandler(run), BlockingHITLHandler(client)):
            deciding = people.submit(decide_next, tenant, "decision", decision="respond", value="staging")
            assert handler.request_decision("Where?", OPTIONS) == "staging"
            deciding.result()
            deciding = people.submit(decide_next, tenant, "permission", decision="approve")
            assert handler.request_permission(tool="shell", action="make")
            deciding.result()
            deciding = people.submit(decide_next, tenant, "clarification", decision="respond", value="text")
            assert handler.request_clarification("What?") == "text"
            deciding.result()
            deciding = people.submit(decide_next, tenant, "env_var", decision="respond", value={"A": "1"})
            assert handler.request_env_var(["A"]) == {"A": "1"}
            deciding.result()
