"""Fifty people decide the same holds at the same moment: one of them wins each, and the others are told who did."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.doors import Tenant, new_tenant
from tests.integration.site import Site

pytestmark = [pytest.mark.stack, pytest.mark.broker, pytest.mark.timeout(600)]

REVIEWERS = 50
AT_ONCE = 5  # holds that are fought over at a time
WORDS = ("approve", "reject", "edit", "respond")
CONTENT: dict[str, dict[str, Any]] = {
    "edit": {"edited_arguments": {"to": "GB29", "amount": 1.0}},
    "respond": {"value": "ask me tomorrow"},
}


@pytest.fixture(scope="module")
def tenant(site: Site) -> Iterator[Tenant]:
    with new_tenant(site) as found:
        yield found


def opened(tenant: Tenant, count: int) -> list[Any]:
    """So many held calls, 50 in an execution."""
    calls = []
    for number in range(count):
        if number % 50 == 0:
            execution_id = tenant.execution()
        arguments = {"to": "GB29", "amount": float(number)}
        calls.append(tenant.propose(execution_id, "send_money", arguments, f"c{number}"))
    return calls


async def fight(tenant: Tenant, calls: list[Any], seed: int) -> list[list[httpx.Response]]:
    """Every reviewer decides every hold, each in its own way; the answers by hold."""
    draw = random.Random(seed)
    people = [tenant.token(f"reviewer-{number}", "reviewer") for number in range(REVIEWERS)]
    # Kept, for less time than the server keeps them: beyond 256 new connections of one address it closes the oldest.
    limits = httpx.Limits(max_connections=REVIEWERS * AT_ONCE, keepalive_expiry=60.0)
    async with httpx.AsyncClient(base_url=tenant.site.url, timeout=60, limits=limits) as client:

        async def decide(call: Any, token: str, word: str) -> httpx.Response:
            body = {"decision": word, "digest": call["digest"], **CONTENT.get(word, {})}
            headers = {"Authorization": f"Bearer {token}"}
            return await client.post(f"/v1/holds/{call['hold_id']}/decision", json=body, headers=headers)

        async def all_on(call: Any) -> list[httpx.Response]:
            words = [(token, draw.choice(WORDS)) for token in people]
            draw.shuffle(words)
            return await asyncio.gather(*(decide(call, token, word) for token, word in words))

        answers: list[list[httpx.Response]] = []
        for start in range(0, len(calls), AT_ONCE):
            answers += await asyncio.gather(*map(all_on, calls[start : start + AT_ONCE]))
        return answers


@pytest.mark.parametrize(
    "holds", [pytest.param(50, id="50-holds"), pytest.param(1_000, id="1000-holds", marks=pytest.mark.long)]
)
async def test_fifty_reviewers_on_each_hold_give_one_winner_and_recorded_refusals(
    tenant: Tenant, holds: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    calls = await asyncio.to_thread(opened, tenant, holds)

    answers = await fight(tenant, calls, seed)

    winners = {}
    for call, found in zip(calls, answers, strict=True):
        assert Counter(answer.status_code for answer in found) == {200: 1, 409: REVIEWERS - 1}, call
        (winner,) = [answer.json() for answer in found if answer.status_code == 200]
        refusals = [answer.json() for answer in found if answer.status_code == 409]
        assert winner["status"] == "resolved"
        assert {each["code"] for each in refusals} == {"already_decided"}
        assert {each["winning_decision_id"] for each in refusals} == {winner["decision_id"]}
        winners[call["hold_id"]] = winner["decision_id"]
    await _is_in_the_log(tenant, {call["execution_id"] for call in calls}, winners)


async def _is_in_the_log(tenant: Tenant, executions: set[str], winners: dict[str, str]) -> None:
    """Every word stands in the log: the one that counted, and each refusal with the decision that won."""
    recorded: dict[str, str] = {}
    refused: Counter[tuple[str, str]] = Counter()
    for execution_id in executions:
        async for event in _events(tenant, execution_id):
            body = event["data"]
            if event["type"] == "DecisionRecorded":
                assert body["hold_id"] not in recorded, "a hold was decided twice"
                recorded[body["hold_id"]] = body["decision_id"]
            elif event["type"] == "DecisionRefused":
                refused[body["hold_id"], body["winning_decision_id"]] += 1
    assert recorded == winners
    assert refused == Counter(dict.fromkeys(winners.items(), REVIEWERS - 1))


async def _events(tenant: Tenant, execution_id: str) -> Any:
    cursor = None
    while True:
        query = f"?limit=500{f'&cursor={cursor}' if cursor else ''}"
        page = (await asyncio.to_thread(tenant.admin.get, f"/executions/{execution_id}/events{query}")).json()
        for item in page["items"]:
            yield item
        if (cursor := page["next_cursor"]) is None:
            return
