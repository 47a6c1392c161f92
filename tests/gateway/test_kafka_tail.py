from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from gateway.kafka.commands import KafkaCommandLog
from gateway.kafka.tail import KafkaTail, Start
from log.errors import AppendFailed, FactsDeleted, LogChanged, LogUnreachable
from log.kafka.client import KafkaSettings
from ops.ports import free_port
from schemas.events.log import WriterAlive, WriterClaimed
from schemas.headers import event_record
from schemas.message import Message
from schemas.record import Event, EventMeta, OutRecord
from schemas.time_question import time_question
from schemas.topics import Topics
from tests.gateway.facts import key_of, started

pytestmark = pytest.mark.broker
LOG = b"_log/0"


async def _write(kafka: str, topic: str, *records: OutRecord) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka)
    await producer.start()
    try:
        for record in records:
            await producer.send_and_wait(
                topic, record.value, key=record.key, partition=0, headers=list(record.headers)
            )
    finally:
        await producer.stop()


def _record(body: Message, number: int, term: int, key: bytes = LOG) -> OutRecord:
    return event_record(
        body, EventMeta(f"e{number}", 1_800_000_000_000, term, number, f"c{number}", "d" * 32, "acme"), key
    )


async def nothing(lane: int, events: Sequence[Event], next_offset: int) -> None:
    """Takes nothing in."""


@asynccontextmanager
async def reading(kafka: str, start: Start) -> AsyncIterator[tuple[KafkaTail, list[Event]]]:
    taken: list[Event] = []

    async def take(lane: int, events: Sequence[Event], next_offset: int) -> None:
        taken.extend(events)
        through[lane] = next_offset

    through = [start.offset]
    tail = KafkaTail(KafkaSettings(kafka), [start], take)
    await tail.open()
    running = asyncio.create_task(tail.run())
    try:
        end = (await tail.end_offsets())[0]
        async with asyncio.timeout(20):
            while through[0] < end:
                await asyncio.sleep(0.01)
        yield tail, taken
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tail.close()


async def test_run_takes_only_what_counts_by_the_term_rule(kafka: str, topics: Topics) -> None:
    key = key_of("e1")
    foreign = OutRecord(b"x", b"not ours", ())
    await _write(
        kafka,
        topics.executions,
        _record(WriterClaimed(claim_id="a", after=-1, worker="w1"), 0, -1),
        _record(started(), 1, 0, key),
        _record(WriterClaimed(claim_id="b", after=0, worker="w2"), 2, -1),
        _record(started("zombie"), 3, 0, key),
        foreign,
        _record(WriterClaimed(claim_id="c", after=0, worker="w3"), 5, -1),
        _record(started("late"), 6, 5, key),
        _record(started(), 7, 2, key),
    )
    async with reading(kafka, Start(topics.executions, 0)) as (tail, taken):
        assert [event.offset for event in taken] == [0, 1, 2, 7]
        assert tail.unreadable == 1


async def test_run_from_the_middle_goes_on_with_the_claim_in_force(kafka: str, topics: Topics) -> None:
    await _write(
        kafka,
        topics.executions,
        _record(WriterClaimed(claim_id="a", after=-1, worker="w"), 0, -1),
        _record(WriterAlive(commands_through=1), 1, 0),
        _record(WriterAlive(commands_through=2), 2, 0),
    )
    async with reading(kafka, Start(topics.executions, 0, offset=2, claim=0)) as (_, taken):
        assert [event.offset for event in taken] == [2]
    async with reading(kafka, Start(topics.executions, 0, offset=2, claim=-1)) as (_, taken):
        assert taken == []


async def test_open_views_beyond_the_log_is_an_error_that_says_what_to_do(kafka: str, topics: Topics) -> None:
    tail = KafkaTail(KafkaSettings(kafka), [Start(topics.executions, 0, offset=5, claim=0)], nothing)
    with pytest.raises(LogChanged, match="placet replay"):
        await tail.open()
    await tail.close()


async def test_open_on_facts_whose_first_ones_were_deleted_is_an_error_though_the_views_stand_behind_them(
    kafka: str, topics: Topics
) -> None:
    alive = [_record(WriterAlive(commands_through=number), number, 0) for number in range(3)]
    await _write(kafka, topics.executions, *alive)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    await admin.delete_records({TopicPartition(topics.executions, 0): RecordsToDelete(before_offset=1)})
    await admin.close()
    tail = KafkaTail(KafkaSettings(kafka), [Start(topics.executions, 0, offset=3, claim=0)], nothing)
    with pytest.raises(FactsDeleted, match=r"begins at offset 1, .* Restore all topics from a backup"):
        await tail.open()
    await tail.close()


async def test_append_nobody_answers_fails_in_time() -> None:
    config = KafkaSettings(f"127.0.0.1:{free_port()}", append_timeout_ms=500)
    log = KafkaCommandLog(config)
    with pytest.raises(AppendFailed):
        await log.append("commands", 0, [OutRecord(b"k", b"v", ())])
    assert not log.connected
    with pytest.raises(LogUnreachable):
        await log.open()


async def test_append_tells_the_logs_time_where_the_broker_stamps(kafka: str, topics: Topics) -> None:
    log = KafkaCommandLog(KafkaSettings(kafka))
    await log.append(topics.executions, 0, [_record(started(), 1, 0, b"k")])
    assert not log.time.known, "its stamps are the writers'"
    await log.append(topics.commands, 0, [time_question(0, 3)])
    await log.close()
    assert abs(log.time.now_ms() - time.time_ns() // 1_000_000) < 2_000
    assert log.time.wrong == ""


async def test_append_records_stand_in_order(kafka: str, topics: Topics) -> None:
    log = KafkaCommandLog(KafkaSettings(kafka))
    keys = [b"%d" % number for number in range(50)]
    await log.append(topics.executions, 0, [_record(started(), 1, 0, key) for key in keys])
    await log.append(topics.executions, 0, [_record(started(), 1, 0, b"last")])
    assert log.connected
    await log.close()
    seen: list[bytes] = []
    consumer = AIOKafkaConsumer(
        bootstrap_servers=kafka, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topics.executions, 0)])
        async with asyncio.timeout(20):
            while len(seen) < 51:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    seen += [record.key for record in records]
    finally:
        await consumer.stop()
    assert seen == [*keys, b"last"]
