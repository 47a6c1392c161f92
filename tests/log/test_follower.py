"""Following named partitions from named offsets: what a follower gives, and what it says where something is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from log.errors import LogChanged, LogUnreachable, OffsetGone, TopicMissing
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower, Polled, follow_for_ever, opened
from log.places import Bounds, TopicPartition
from ops.ports import free_port
from tests.log.logs import PATIENCE_S, KafkaWorld, records, texts

pytestmark = pytest.mark.broker


async def _written(world: KafkaWorld, *said: str) -> TopicPartition:
    tp = TopicPartition(world.log.topics.executions, 0)
    appender = await world.log.appender()
    await appender.append(tp, records(*said))
    await appender.abandon()
    return tp


async def _read(follower: Follower, count: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            for _, raws in await follower.poll():
                found += texts(raws)
    return found


async def _until_some(poll: Callable[[], Awaitable[Polled]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await poll():
            pass


def _settings(world: KafkaWorld) -> KafkaSettings:
    return KafkaSettings(world.bootstrap_servers)


async def test_follower_that_reads_in_bulk_gets_the_first_record_after_a_pause_at_once(
    kafka_log_world: KafkaWorld,
) -> None:
    tp = await _written(kafka_log_world, "a")
    # The broker would wait for a mebibyte, and for twice the time that is waited for here.
    bulk = BULK._replace(at_least=2**20, wait_ms=50, rest_ms=int(PATIENCE_S * 2_000))
    async with opened(_settings(kafka_log_world), bulk) as follower:
        follower.stand_at({tp: 0})
        assert await _read(follower, 1) == ["a"]
        while await follower.poll():
            pass
        await _written(kafka_log_world, "b")
        assert await _read(follower, 1) == ["b"]
        await _written(kafka_log_world, "c")
        assert await _read(follower, 1) == ["c"]


async def test_follower_gives_each_record_once_from_where_it_stands(kafka_log_world: KafkaWorld) -> None:
    tp = await _written(kafka_log_world, "a", "b", "c")
    async with opened(_settings(kafka_log_world), BULK) as follower:
        assert tp in await follower.partitions(tp.topic)
        assert await follower.bounds([tp]) == {tp: Bounds(0, 3)}
        assert await follower.ends([tp]) == {tp: 3}
        follower.stand_at({tp: 1})
        assert await _read(follower, 2) == ["b", "c"]
        assert await follower.position(tp) == 3
        assert follower.progress() == (3, 0)
        assert follower.unread([(tp, 1)]) == 2
        follower.stand_at({tp: 0})
        assert await _read(follower, 3) == ["a", "b", "c"]
        assert (await follower.read_one(tp, 1)).offset == 1


async def test_follower_that_rests_gives_nothing(kafka_log_world: KafkaWorld) -> None:
    tp = await _written(kafka_log_world, "a")
    async with opened(_settings(kafka_log_world)) as follower:
        follower.stand_at({tp: 0})
        follower.stand_at({})
        assert await follower.poll(100) == []
        assert follower.progress() == (0, 0)


async def test_offset_that_was_deleted_is_named_and_never_skipped(kafka_log_world: KafkaWorld) -> None:
    tp = await _written(kafka_log_world, "a", "b", "c")
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_log_world.bootstrap_servers)
    await admin.start()
    await admin.delete_records({KafkaPartition(*tp): RecordsToDelete(before_offset=2)})
    await admin.close()
    async with opened(_settings(kafka_log_world)) as follower:
        for poll in (follower.poll, follower.poll_on):
            follower.stand_at({tp: 1})
            with pytest.raises(OffsetGone, match="no longer holds offset 1, which is next") as gone:
                await _until_some(poll)
            assert (gone.value.tp, gone.value.offset) == (tp, 1)
    assert issubclass(OffsetGone, LogChanged)


async def test_topic_that_does_not_exist_is_missing(kafka_log_world: KafkaWorld) -> None:
    async with opened(_settings(kafka_log_world)) as follower:
        with pytest.raises(TopicMissing, match="nobodys"):
            await follower.partitions("nobodys")


async def test_closed_follower_says_so_in_the_logs_own_error(kafka_log_world: KafkaWorld) -> None:
    tp = await _written(kafka_log_world, "a")
    async with opened(_settings(kafka_log_world)) as follower:
        follower.stand_at({tp: 0})
    with pytest.raises(LogUnreachable, match="ConsumerStoppedError"):
        await follower.poll()


async def test_nobody_answers_is_unreachable() -> None:
    with pytest.raises(LogUnreachable):
        async with opened(KafkaSettings(f"127.0.0.1:{free_port()}")):
            pass


async def test_following_for_ever_begins_again_with_a_connection_of_its_own(
    kafka_log_world: KafkaWorld, caplog: pytest.LogCaptureFixture
) -> None:
    tp = await _written(kafka_log_world, "a", "b")
    found: list[list[str]] = []
    seen: list[Follower] = []
    twice = asyncio.Event()

    async def follow(follower: Follower) -> None:
        seen.append(follower)
        follower.stand_at({tp: 0})
        found.append(await _read(follower, 2))
        if len(found) == 2:
            twice.set()
        raise LogUnreachable("here", "pulled")

    with caplog.at_level(logging.WARNING):
        running = asyncio.create_task(follow_for_ever("the letters", follow, _settings(kafka_log_world)))
        async with asyncio.timeout(PATIENCE_S):
            await twice.wait()
        running.cancel()
        await asyncio.wait({running})
    assert found[:2] == [["a", "b"], ["a", "b"]]
    assert seen[0] is not seen[1]
    assert "the letters cannot be read (Kafka does not answer at here (pulled)" in caplog.text
    with pytest.raises(LogUnreachable):
        await seen[0].poll()
