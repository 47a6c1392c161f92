"""`placet.consume` on a real stack: the gateway's stream and Kafka itself say the same."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gateway.live.cursor import CursorKey, Vector
from placet import CheckpointRefused, Consumer, LogEvent, NotAuthorised, consume
from tests.gateway.conftest import PARTITIONS, Caller, Doors
from tests.gateway.sockets import open_socket
from tests.gateway.test_stream_live import messages_of

pytestmark = [pytest.mark.stack, pytest.mark.broker]

SLOW_CALLS = 60


@pytest.fixture
def tenant(doors: Doors) -> str:
    """A tenant whose executions have no history."""
    name = f"t{uuid4().hex[:8]}"
    doors.publish(name)
    return name


def stream_of(doors: Doors, tenant: str, **more: Any) -> Consumer:
    return consume(doors.url, token=doors.token("ana", "analyst", tenant=tenant), **more)


def kafka_of(doors: Doors, **more: Any) -> Consumer:
    data_dir = doors.stack.data_dir
    return consume(
        doors.url,
        bootstrap_servers=doors.stack.status()["bootstrap_servers"],
        kafka_settings=data_dir / "kafka" / "clients" / "reader.json",
        keys_dir=data_dir / "keys",
        follow=False,
        **more,
    )


def worked(doors: Doors, tenant: str, agent: str = "billing") -> str:
    """A run with a call that is held, and one that is released."""
    bot = doors.caller("bot", "agent", tenant=tenant, agent=agent)
    execution_id = bot.execution()
    bot.propose(execution_id)
    bot.propose(execution_id, "read_file", arguments={"text": "é" * 120 * 1024})
    return execution_id


def resyncs(doors: Doors) -> float:
    """How often this gateway has told a reader to begin anew."""
    (line,) = re.findall(
        r"^placet_gateway_resyncs_total (\S+)$", doors.client.get(f"{doors.url}/metrics").text, re.M
    )
    return float(line)


def said(event: LogEvent) -> tuple[Any, ...]:
    """What both say of an event; a view's digest comes only with the view, and who plants calls only from Kafka."""
    hidden = ("view_digest", "probe")
    data = {name: value for name, value in event.data.items() if name not in hidden}
    where = event.partition, event.offset, event.term
    return event.id, event.type, event.at, event.execution_id, event.version, event.command_id, where, data


def test_consume_says_the_same_over_the_stream_and_from_kafka(doors: Doors, tenant: str) -> None:
    executions = [worked(doors, tenant) for _ in range(4)]
    streamed = list(stream_of(doors, tenant, follow=False))
    read = [one for one in kafka_of(doors) if one.tenant == tenant]
    assert len(streamed) > 20
    assert {one.execution_id for one in streamed} == set(executions)
    assert sorted(map(said, streamed), key=lambda row: row[0]) == sorted(
        map(said, read), key=lambda row: row[0]
    )
    assert {one.project for one in read} == {"books"}
    assert max(len(one.raw) for one in read) > 240 * 1024
    for partition in range(PARTITIONS):
        offsets = [one.offset for one in streamed if one.partition == partition]
        assert offsets == sorted(offsets)


def test_consume_of_a_tenant_without_a_history_ends_at_once(doors: Doors, tenant: str) -> None:
    assert list(stream_of(doors, tenant, follow=False)) == []
    assert list(stream_of(doors, tenant, follow=False, start="latest")) == []


def test_consume_ends_with_what_was_written_before_and_goes_on_from_its_checkpoint(
    doors: Doors, tenant: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "position.json"
    seen: list[str] = []
    for _ in range(3):
        execution_id = worked(doors, tenant)
        found = list(stream_of(doors, tenant, follow=False, checkpoint=checkpoint))
        assert {one.execution_id for one in found} == {execution_id}
        seen += [one.id for one in found]
    assert sorted(seen) == sorted(one.id for one in stream_of(doors, tenant, follow=False))


def test_consume_from_the_latest_delivers_what_follows(doors: Doors, tenant: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "position.json"
    worked(doors, tenant)
    assert list(stream_of(doors, tenant, start="latest", follow=False, checkpoint=checkpoint)) == []
    execution_id = worked(doors, tenant)
    found = list(stream_of(doors, tenant, start="latest", follow=False, checkpoint=checkpoint))
    assert {one.execution_id for one in found} == {execution_id}


def test_consume_by_agent_type_and_execution(doors: Doors, tenant: str) -> None:
    of_billing, of_other = worked(doors, tenant), worked(doors, tenant, agent="other")
    found = list(stream_of(doors, tenant, follow=False, agents="billing", types=["HoldOpened"]))
    assert [(one.execution_id, one.type) for one in found] == [(of_billing, "HoldOpened")]
    found = list(stream_of(doors, tenant, follow=False, execution=of_other))
    assert {one.execution_id for one in found} == {of_other}
    found = list(kafka_of(doors, execution=of_other, types="ToolCallProposed"))
    assert [one.data["agent"] for one in found] == ["other", "other"]


async def test_consume_follows_what_happens(doors: Doors, tenant: str) -> None:
    events = aiter(stream_of(doors, tenant))
    first = asyncio.ensure_future(anext(events))
    execution_id = await asyncio.to_thread(worked, doors, tenant)
    found = [await asyncio.wait_for(first, 60)]
    while found[-1].type != "ToolCallReleased":
        found.append(await asyncio.wait_for(anext(events), 60))
    await events.aclose()
    assert [one.version for one in found] == list(range(1, len(found) + 1))
    assert {one.execution_id for one in found} == {execution_id}


def test_consume_that_was_too_slow_for_the_stream_gets_everything_once(doors: Doors, tenant: str) -> None:
    worked(doors, tenant)
    events = iter(stream_of(doors, tenant))
    seen = [next(events).id]
    before = resyncs(doors)
    # More than may wait for it, here and in the buffers of the connection: the gateway gives it up meanwhile.
    bot = doors.caller("bot", "agent", tenant=tenant, agent="billing")
    execution_id = bot.execution()
    for _ in range(SLOW_CALLS):
        bot.propose(execution_id, "read_file", arguments={"text": '"' * 120 * 1024})
    assert resyncs(doors) > before
    expected = [one.id for one in stream_of(doors, tenant, follow=False)]
    seen += [next(events).id for _ in expected[1:]]
    events.close()
    assert sorted(seen) == sorted(expected)


def test_consume_by_a_checkpoint_of_another_installation_is_an_error(doors: Doors, tenant: str) -> None:
    vector = Vector((3,) * (PARTITIONS + 1), (7,) * (PARTITIONS + 1))
    theirs = CursorKey(b"k" * 32, PARTITIONS + 1).write(vector)
    with pytest.raises(CheckpointRefused, match="no position in this installation's log") as error:
        list(stream_of(doors, tenant, start=theirs, follow=False))
    assert error.value.why == "other_log"
    worked(doors, tenant)
    (one, *_) = kafka_of(doors)
    for of_the_other_form in (stream_of(doors, tenant, start=one.cursor), kafka_of(doors, start=theirs)):
        with pytest.raises(CheckpointRefused) as error:
            list(of_the_other_form)
        assert error.value.why == "other_log"


def test_consume_by_a_position_of_a_log_that_was_begun_anew_is_an_error(doors: Doors, tenant: str) -> None:
    secret = (doors.stack.data_dir / "keys" / "cursor.key").read_bytes()
    vector = Vector((0,) * (PARTITIONS + 1), (7,) * (PARTITIONS + 1))
    with pytest.raises(CheckpointRefused, match="its log is another one") as error:
        list(stream_of(doors, tenant, start=CursorKey(secret, PARTITIONS + 1).write(vector), follow=False))
    assert error.value.why == "gone"


def test_consume_by_an_agents_token_is_refused(doors: Doors) -> None:
    with pytest.raises(NotAuthorised):
        list(consume(doors.url, token=doors.token("bot", "agent", agent="billing"), follow=False))


async def test_socket_may_begin_with_the_first_message(doors: Doors, tenant: str) -> None:
    execution_id = await asyncio.to_thread(worked, doors, tenant)
    async with open_socket(doors.url, doors.token("ana", "analyst", tenant=tenant)) as socket:
        await socket.subscribe("events", cursor="earliest")
        first = await socket.next("event")
    assert (first["execution_id"], first["version"]) == (execution_id, 1)


def test_stream_that_does_not_follow_says_that_it_has_caught_up(
    doors: Doors, anna: Caller, bot: Caller
) -> None:
    execution_id = bot.execution()
    params = {"follow": "false", "cursor": "earliest"}
    headers = {"Authorization": f"Bearer {anna.token}"}
    with anna.client.stream(
        "GET", f"{anna.url}/v1/events/stream", params=params, headers=headers
    ) as response:
        messages = list(messages_of(response.iter_lines()))
    assert messages[-1]["type"] == "caught_up"
    assert execution_id in {message.get("execution_id") for message in messages}
    headers["Last-Event-ID"] = messages[-1]["cursor"]
    with anna.client.stream(
        "GET", f"{anna.url}/v1/events/stream", params=params, headers=headers
    ) as response:
        assert [message["type"] for message in messages_of(response.iter_lines())] == ["caught_up"]
    params["follow"] = "no"
    assert anna.get("/v1/events/stream", params=params).status_code == 422
