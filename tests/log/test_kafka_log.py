"""What only Kafka can do to a log: strangers' records, brokers that die or freeze, members that come and go."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer

from log.errors import AppendFailed, LogUnreachable
from log.kafka.feed import KafkaFeed
from log.kafka.log import KafkaLog
from log.places import TopicPartition
from log.port import CommandFeed
from ops.kafka.broker import Broker
from ops.ports import free_port
from schemas.topics import Topics
from tests.log.logs import PATIENCE_S, KafkaWorld, kafka_world, poll, read_all, record, records, take, texts
from tests.servers.brokers import pause, resume

pytestmark = pytest.mark.broker


@pytest.fixture
async def own_world(broker: Broker) -> AsyncIterator[KafkaWorld]:
    """A log on a broker of the test's own."""
    async with kafka_world(broker.bootstrap_servers, "own") as world:
        yield world


async def test_read_foreign_nulls_come_as_empty_bytes(kafka_log_world: KafkaWorld) -> None:
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.commands, 0)
    async with AIOKafkaProducer(bootstrap_servers=kafka_log_world.bootstrap_servers) as stranger:
        for key, value in [(None, b"value"), (b"key", None), (None, None)]:
            batch = stranger.create_batch()
            batch.append(timestamp=None, key=key, value=value, headers=[("null", None), ("set", b"1")])
            await (await stranger.send_batch(batch, tp.topic, partition=tp.partition))
    found = await read_all(log, tp)
    assert [(raw.key, raw.value) for raw in found] == [(b"", b"value"), (b"key", b""), (b"", b"")]
    assert {raw.headers for raw in found} == {(("null", b""), ("set", b"1"))}


async def test_commands_topic_timestamps_are_the_brokers(kafka_log_world: KafkaWorld) -> None:
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.commands, 0)
    async with AIOKafkaProducer(bootstrap_servers=kafka_log_world.bootstrap_servers) as stranger:
        batch = stranger.create_batch()
        batch.append(timestamp=1_000, key=b"key", value=b"value")
        await (await stranger.send_batch(batch, tp.topic, partition=tp.partition))
    (raw,) = await read_all(log, tp)
    assert abs(raw.timestamp_ms - time.time() * 1000) < 60_000


async def test_append_clock_hours_ahead_taken(kafka_log_world: KafkaWorld) -> None:
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.executions, 0)
    async with AIOKafkaProducer(bootstrap_servers=kafka_log_world.bootstrap_servers) as ahead:
        batch = ahead.create_batch()
        batch.append(timestamp=int((time.time() + 3 * 3600) * 1000), key=b"key", value=b"early")
        await (await ahead.send_batch(batch, tp.topic, partition=tp.partition))
    assert texts(await read_all(log, tp)) == ["early"]


async def test_unreachable_every_door_says_where(topic_prefix: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    log = KafkaLog(address, Topics(topic_prefix))
    tp = TopicPartition(log.topics.executions, 0)
    began = time.monotonic()
    for door in (
        log.topic_id(tp.topic),
        log.partition_count(tp.topic),
        log.bounds(tp),
        log.appender(),
        log.send(tp, record("x")),
        log.feed("group", "worker", [tp.topic]),
        anext(log.read(tp, 0, 1)),
        anext(log.tail(tp.topic, {0: 0})),
    ):
        with pytest.raises(LogUnreachable, match=address) as caught:
            await door
        assert caught.value.address == address
    await log.close()
    assert time.monotonic() - began < 10


async def test_append_broker_killed_outcome_unknown_and_a_fresh_appender_goes_on(
    broker: Broker, own_world: KafkaWorld
) -> None:
    log = own_world.another_log(append_timeout_ms=1_500)
    events, commands = TopicPartition(log.topics.executions, 0), TopicPartition(log.topics.commands, 0)
    appender = await log.appender()
    await appender.append(events, records("before"))
    feed = await log.feed("group", "worker", [commands.topic])
    feed.start_from(commands, 0)
    await log.send(commands, record("asked before"))
    assert await poll(feed, 1) == ["asked before"]
    tail = log.tail(events.topic, {0: 0})
    assert texts((await anext(tail))[1]) == ["before"]
    following = asyncio.ensure_future(take(tail, 1))

    pause(broker)
    append = asyncio.ensure_future(appender.append(events, records("lost")))
    await asyncio.sleep(0.1)
    broker.kill()
    with pytest.raises(AppendFailed, match="unknown"):
        await append
    with pytest.raises(AppendFailed):
        await appender.append(events, records("refused"))
    began = time.monotonic()
    await appender.abandon()
    assert time.monotonic() - began < 3

    await asyncio.to_thread(broker.start)
    fresh = await log.appender()
    assert await fresh.append(events, records("after")) == 1
    assert await following == [(0, "after")]
    await log.send(commands, record("asked after"))
    assert await poll(feed, 1) == ["asked after"]
    await feed.close()


async def test_append_broker_frozen_what_waited_is_never_sent(broker: Broker, own_world: KafkaWorld) -> None:
    log = own_world.another_log(append_timeout_ms=1_000)
    tp = TopicPartition(log.topics.executions, 0)
    appender = await log.appender()
    await appender.append(tp, records("before"))
    pause(broker)
    try:
        cancelled = asyncio.ensure_future(appender.append(tp, records("in flight")))
        waiting = asyncio.ensure_future(appender.append(tp, records("waiting")))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        with pytest.raises(AppendFailed, match="not acknowledged within 1000 ms"):
            await waiting
        began = time.monotonic()
        await appender.abandon()
        assert time.monotonic() - began < 3
    finally:
        resume(broker)
    fresh = await log.appender()
    await fresh.append(tp, records("after"))
    # The cancelled batch was on its way and may land at any time: that is what terms are for.
    found = texts(await read_all(log, tp))
    assert [text for text in found if text != "in flight"] == ["before", "after"]


async def test_send_broker_away_for_a_moment_lands(broker: Broker, own_world: KafkaWorld) -> None:
    log = own_world.another_log(append_timeout_ms=1_000)
    tp = TopicPartition(log.topics.dead_letters, 0)
    assert await log.send(tp, record("before")) == 0
    broker.kill()
    sending = asyncio.ensure_future(log.send(tp, record("after")))
    await asyncio.to_thread(broker.start)
    assert await sending == 1
    assert texts(await read_all(log, tp)) == ["before", "after"]


async def test_tail_topic_recreated_stops(
    kafka_log_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("log.kafka.reader.SAME_TOPIC_EVERY_S", 0.0)
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.executions, 0)
    await log.send(tp, record("old"))
    async with asyncio.timeout(PATIENCE_S):
        tail = log.tail(tp.topic, {0: 0})
        assert texts((await anext(tail))[1]) == ["old"]
        following = asyncio.ensure_future(anext(tail))
        await kafka_log_world.recreate(tp.topic)
        with pytest.raises(Exception, match=tp.topic) as caught:
            await following
    assert type(caught.value).__name__ in {"LogTruncated", "TopicMissing"}


async def test_feed_placed_while_a_poll_waits_gets_everything_from_there(kafka_log_world: KafkaWorld) -> None:
    feed, tp = await feed_with(kafka_log_world, "a", "b")
    polling = asyncio.ensure_future(feed.poll(5_000))
    await asyncio.sleep(0.05)
    feed.start_from(tp, 0)
    assert texts((await polling)[tp]) == ["a", "b"]
    await feed.close()


async def test_feed_placed_right_after_a_fetch_gets_everything_from_there(
    kafka_log_world: KafkaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, tp = await feed_with(kafka_log_world, "a", "b")
    fetch = feed._consumer.getmany

    async def fetch_and_place(timeout_ms: int = 0) -> object:
        fetched = await fetch(timeout_ms=timeout_ms)
        if fetched:
            # Runs once the poll has taken these records, and before anything else does.
            asyncio.get_running_loop().call_soon(feed.start_from, tp, 0)
        return fetched

    monkeypatch.setattr(feed._consumer, "getmany", fetch_and_place)
    polling = asyncio.ensure_future(feed.poll(5_000))
    await asyncio.sleep(0.05)
    await kafka_log_world.log.send(tp, record("c"))
    assert texts((await polling)[tp]) == ["c"]
    monkeypatch.undo()
    assert await poll(feed, 3) == ["a", "b", "c"]
    await feed.close()


async def test_feed_poll_ends_at_once_when_the_assignment_changes(kafka_log_world: KafkaWorld) -> None:
    feed, _ = await feed_with(kafka_log_world, "a")
    polling = asyncio.ensure_future(feed.poll(60_000))
    await asyncio.sleep(0.05)
    assert not polling.done()
    feed.assigned([])
    async with asyncio.timeout(PATIENCE_S):
        assert await polling == {}
    await feed.close()


async def feed_with(world: KafkaWorld, *sent: str) -> tuple[KafkaFeed, TopicPartition]:
    """A feed that has delivered these records, and their partition."""
    tp = TopicPartition(world.log.topics.commands, 0)
    feed = await world.log.feed("group", "worker", [tp.topic])
    feed.start_from(tp, 0)
    for text in sent:
        await world.log.send(tp, record(text))
    assert await poll(feed, len(sent)) == list(sent)
    return feed, tp


async def test_feed_members_come_and_go_nothing_is_lost_or_repeated(kafka_log_world: KafkaWorld) -> None:
    log = kafka_log_world.log
    topic = log.topics.commands
    driver = Driver()
    first = await log.feed("group", "first", [topic])
    sending = asyncio.ensure_future(send_numbers(log, topic, 150))
    for round_ in range(2):
        joining = asyncio.ensure_future(
            kafka_log_world.another_log().feed("group", f"other{round_}", [topic])
        )
        while not joining.done():
            await driver.step([first])
        other = await joining
        for _ in range(15):
            await driver.step([first, other])
        await other.close()
        driver.forget(other)
    await sending
    async with asyncio.timeout(PATIENCE_S):
        while sum(map(len, driver.delivered.values())) < 150:
            await driver.step([first])
    await first.close()
    assert {tp.partition: found for tp, found in driver.delivered.items()} == {
        number: [str(text) for text in range(number, 150, 3)] for number in range(3)
    }


class Driver:
    """What a worker does with its feed: start what is new where the partition stands, take what comes."""

    def __init__(self) -> None:
        self.delivered: dict[TopicPartition, list[str]] = defaultdict(list)
        self._known: dict[CommandFeed, frozenset[TopicPartition]] = {}

    async def step(self, feeds: list[CommandFeed]) -> None:
        for feed in feeds:
            for tp, raws in (await feed.poll(20)).items():
                assert raws[0].offset == len(self.delivered[tp])
                self.delivered[tp] += texts(raws)
            known, now = self._known.get(feed, frozenset()), feed.assignment()
            for tp in now - known:
                feed.start_from(tp, len(self.delivered[tp]))
            self._known[feed] = now

    def forget(self, feed: CommandFeed) -> None:
        del self._known[feed]


async def send_numbers(log: KafkaLog, topic: str, count: int) -> None:
    for number in range(count):
        await log.send(TopicPartition(topic, number % 3), record(str(number)))
        await asyncio.sleep(0.01)
