from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.asking.asker import Ask
from gateway.bodies import RequestHumanInput
from gateway.live.definitions import Published
from gateway.live.reader import at_hand
from gateway.operations import requests
from gateway.operations.calls import plan_propose
from gateway.operations.plan import Unprepared
from gateway.policy import GatewayPolicy
from gateway.problems import Problem
from gateway.shares import quotas as q
from gateway.shares.quotas import ProposalQuotas
from schemas.actor import Actor
from schemas.canonical import canonical
from schemas.token import Claims
from tests.gateway.facts import HELD_CALL, Partition, key_of, new_live, started


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(q, "monotonic", found)
    return found


def taken(quotas: ProposalQuotas, agent: str, times: int, tenant: str = "acme") -> int:
    """How many of so many proposals were let through."""
    refused: list[Problem] = []
    for _ in range(times):
        try:
            quotas.take(tenant, "main", agent)
        except Problem as problem:
            refused.append(problem)
    assert {(problem.code, problem.status) for problem in refused} <= {("quota", 429)}
    assert all(problem.fields["retry_after"] >= 1 for problem in refused)
    return times - len(refused)


def test_proposals_of_an_agent_are_a_burst_and_then_its_rate(clock: Clock) -> None:
    quotas = ProposalQuotas(60, 6000)
    assert taken(quotas, "bot", 1000) == 10
    clock.now += 60
    assert taken(quotas, "bot", 1000) == 10
    passed = 0
    for _ in range(120):
        clock.now += 0.5
        passed += taken(quotas, "bot", 10)
    assert passed == 60


def test_a_thousand_a_minute_are_over_the_default_and_six_hundred_are_not(clock: Clock) -> None:
    fast, usual = ProposalQuotas(600, 6000), ProposalQuotas(600, 6000)
    passed = 0
    for _ in range(1000):
        clock.now += 0.06
        passed += taken(fast, "bot", 1)
    assert passed < 1000
    passed = 0
    for _ in range(600):
        clock.now += 0.1
        passed += taken(usual, "bot", 1)
    assert passed == 600


def test_one_agents_flood_leaves_another_its_own(clock: Clock) -> None:
    quotas = ProposalQuotas(60, 6000)
    taken(quotas, "bot", 1000)
    assert taken(quotas, "other", 5) == 5
    assert taken(quotas, "bot", 5, tenant="another") == 5


def test_a_tenants_agents_share_its_quota_and_no_other_tenants(clock: Clock) -> None:
    quotas = ProposalQuotas(600, 60)
    assert sum(taken(quotas, f"agent-{number}", 2) for number in range(20)) == 10
    assert taken(quotas, "agent-0", 5, tenant="another") == 5


BOT = Claims(
    Actor(subject="bot", tenant="acme", project="books", roles=("agent",), agent="billing"),
    2_000_000_000,
    "t",
)
SEALED = canonical(
    {
        "inputSchema": {
            "type": "object",
            "properties": {"token": {"type": "string", "x-placet-sensitive": True}},
        }
    }
)


def gate_with(quotas: ProposalQuotas) -> Any:
    """What an operation needs to be planned, of an execution that has the call c1."""
    live, _ = new_live()
    Partition(live).write(key_of("e1"), "propose", started(), *HELD_CALL)
    tool = Published("send_money", 1, SEALED, "ops", 0, 0)
    live.definitions.tools["acme", "*", "send_money"] = [tool]
    reader = SimpleNamespace(at_hand=lambda subject: at_hand(live.cache, subject))
    return SimpleNamespace(
        live=live,
        reader=reader,
        quotas=quotas,
        policy=GatewayPolicy(),
        execution_ask=lambda *parts, anew=False: Ask(parts[1], parts[2], b"", "", 1, parts[3], anew),
    )


def planned(times: int, plan: Callable[[int], object]) -> int:
    """How many of so many plans were let through."""
    refused: list[str] = []
    for number in range(times):
        try:
            plan(number)
        except Unprepared:
            continue
        except Problem as problem:
            refused.append(problem.code)
    assert set(refused) <= {"quota"}
    return times - len(refused)


def test_repeat_of_a_call_is_counted_only_where_it_brings_values_to_be_sealed(clock: Clock) -> None:
    gate = gate_with(ProposalQuotas(60, 6000))

    def propose(arguments: dict[str, Any]) -> object:
        body = {"call_id": "c1", "tool": "send_money", "arguments": arguments}
        return plan_propose(gate, BOT, "e1", lambda: body, None)

    assert planned(40, lambda number: propose({"amount": number})) == 40
    assert planned(40, lambda number: propose({"token": f"guess-{number}"})) == 10


def test_requests_of_an_agent_are_counted_with_its_calls(clock: Clock) -> None:
    gate = gate_with(ProposalQuotas(60, 6000))

    def ask(request_id: str) -> object:
        body = RequestHumanInput(question="Which?", request_id=request_id)
        return requests._plan(gate, BOT, body, "e1", request_id, None)

    assert planned(40, lambda number: ask(f"q{number}")) == 10
    with pytest.raises(Problem, match="calls and requests a minute"):
        plan_propose(gate, BOT, "e1", lambda: {"call_id": "c9", "tool": "send_money", "arguments": {}}, None)
