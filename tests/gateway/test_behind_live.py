"""A gateway that has read less of the log than another says no such thing for certain before it has caught up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import ConsumerRecord, TopicPartition

from gateway.kafka.tail import KafkaTail
from tests.gateway.another import another_gateway
from tests.gateway.conftest import Caller, Doors

pytestmark = [pytest.mark.stack, pytest.mark.broker]
BEHIND_S = 1.0


@pytest.fixture
def operator(doors: Doors) -> Caller:
    return doors.caller("olga", "operator")


@pytest.fixture(autouse=True)
def behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway of this process hears everything late."""
    take = KafkaTail._take

    taking = set[asyncio.Task[None]]()

    async def later(self: KafkaTail, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        await asyncio.sleep(BEHIND_S)
        await take(self, tp, records)

    async def late(self: KafkaTail, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        task = asyncio.create_task(later(self, tp, records))
        taking.add(task)
        task.add_done_callback(taking.discard)

    monkeypatch.setattr(KafkaTail, "_take", late)


async def test_variables_that_were_given_at_another_gateway_are_handed_over(
    doors: Doors, bot: Caller, anna: Caller
) -> None:
    execution_id = bot.execution()
    question = {"kind": "env_var", "question": "Which?", "fields": ["AA"]}
    body = {"request_id": "r1", "execution_id": execution_id, **question}
    async with another_gateway(doors) as url:
        asked = (await asyncio.to_thread(bot.post, "/v1/requests", body)).json()
        here = f"{url}/v1/requests/r1?execution_id={execution_id}"
        await until_known(bot, here)
        given = {"decision": "respond", "value": {"AA": "secret"}}
        answered = await asyncio.to_thread(anna.post, f"/v1/holds/{asked['hold_id']}/decision", given)
        assert answered.status_code == 200, answered.text
        path = f"/v1/requests/r1/secrets?execution_id={execution_id}"
        taken = await asyncio.to_thread(replace(bot, url=url).post, path, {"attempt_id": uuid4().hex})
    assert taken.status_code == 200, taken.text
    assert [one["value"] for one in taken.json()["secrets"]] == ["secret"]


async def test_variables_that_nobody_has_given_are_still_refused(doors: Doors, bot: Caller) -> None:
    question = {"kind": "env_var", "question": "Which?", "fields": ["AA"]}
    execution_id = bot.execution()
    body = {"request_id": "r1", "execution_id": execution_id, **question}
    async with another_gateway(doors) as url:
        await asyncio.to_thread(bot.post, "/v1/requests", body)
        path = f"/v1/requests/r1/secrets?execution_id={execution_id}"
        taken = await asyncio.to_thread(replace(bot, url=url).post, path, {"attempt_id": uuid4().hex})
    assert (taken.status_code, taken.json()["code"]) == (409, "not_released")


async def test_sensitive_value_of_an_edit_at_another_gateway_comes_with_the_leave_to_run(
    doors: Doors, bot: Caller, anna: Caller, operator: Caller
) -> None:
    name = f"secretive-{uuid4().hex[:8]}"
    schema = {"type": "object", "properties": {"pin": {"type": "string", "x-placet-sensitive": True}}}
    assert operator.call("PUT", f"/v1/tools/{name}", {"inputSchema": schema}).status_code == 200
    async with another_gateway(doors) as url:
        call = bot.propose(bot.execution(), name, arguments={})
        path = f"/v1/executions/{call['execution_id']}/tool-calls/{call['call_id']}"
        await until_known(bot, f"{url}{path}")
        edit = {"decision": "edit", "digest": call["digest"], "edited_arguments": {"pin": "1234"}}
        edited = await asyncio.to_thread(anna.post, f"/v1/holds/{call['hold_id']}/decision", edit)
        assert edited.status_code == 200, edited.text
        body = {"digest": edited.json()["edited_digest"], "attempt_id": "P1"}
        consumed = await asyncio.to_thread(replace(bot, url=url).post, f"{path}/consume", body)
    assert consumed.status_code == 200, consumed.text
    assert [one["value"] for one in consumed.json()["secrets"]] == ["1234"]


async def test_definition_that_was_published_at_another_gateway_is_found(
    doors: Doors, operator: Caller
) -> None:
    name = f"new-{uuid4().hex[:8]}"
    async with another_gateway(doors) as url:
        published = await asyncio.to_thread(operator.call, "PUT", f"/v1/tools/{name}", {})
        assert published.status_code == 200, published.text
        found = await asyncio.to_thread(replace(operator, url=url).get, f"/v1/tools/{name}")
    assert found.status_code == 200, found.text


async def until_known(caller: Caller, url: str) -> None:
    """Wait until a gateway has read of something: from then on it has a row of its own."""
    async with asyncio.timeout(20):
        while (await asyncio.to_thread(_get, caller, url)).status_code not in (200, 202):
            await asyncio.sleep(0.1)


def _get(caller: Caller, url: str) -> Any:
    return caller.client.get(url, headers={"Authorization": f"Bearer {caller.token}"})
