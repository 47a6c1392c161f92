import pytest

from gateway import quotas as q
from gateway.problems import Problem
from gateway.quotas import ProposalQuotas


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
