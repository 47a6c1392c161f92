"""A log whose files are damaged while Kafka is stopped: every reader says where, and that it is to be restored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka.errors import KafkaError, KafkaStorageError, UnknownError

from gateway.kafka.past import KafkaPast
from gateway.kafka.records import RecordReader
from gateway.kafka.tail import KafkaTail as GatewayTail
from gateway.kafka.tail import Start
from log.errors import LogDamaged, LogFailing
from log.kafka.client import KafkaSettings
from log.kafka.follower import BULK, Follower
from log.places import TopicPartition
from ops.kafka.broker import Broker
from schemas.record import Event
from services.runtime.worker import FATAL
from tests.log.logs import KafkaWorld, kafka_world, read_all, records

WITHIN_S = 60.0


def spoil(data_dir: Path, tp: TopicPartition) -> None:
    """Change a byte of the second record, in the file of its partition."""
    (segment,) = data_dir.glob(f"**/{tp.topic}-{tp.partition}/*.log")
    written = segment.read_bytes()
    assert b"second" in written
    segment.write_bytes(written.replace(b"second", b"sEcond", 1))


async def a_damaged_log(broker: Broker, world: KafkaWorld) -> TopicPartition:
    """Three records in batches of their own, of which the second is no longer as it was written."""
    tp = TopicPartition(world.log.topics.executions, 0)
    appender = await world.log.appender()
    for text in ("first", "second", "third"):
        await appender.append(tp, records(text))
    await appender.abandon()
    await asyncio.to_thread(broker.stop)
    spoil(broker.config.data_dir, tp)
    await asyncio.to_thread(broker.start)
    return tp


@pytest.mark.broker
async def test_every_reader_of_a_damaged_record_says_where_it_is(broker: Broker) -> None:
    async with kafka_world(broker.bootstrap_servers, "own") as world:
        tp = await a_damaged_log(broker, world)
        said = rf"in {tp.topic}/0 at about offset [01] is damaged .*: restore the log from a backup"
        async with asyncio.timeout(3 * WITHIN_S):
            with pytest.raises(LogDamaged, match=said):
                await read_all(world.another_log(), tp)
            await _projector_says(broker, tp, said)
            await _gateway_says(broker, tp, said)
    assert issubclass(LogDamaged, FATAL)


async def _projector_says(broker: Broker, tp: TopicPartition, said: str) -> None:
    tail = Follower(KafkaSettings(broker.bootstrap_servers), BULK)
    await tail.open()
    tail.stand_at({tp: 0})
    with pytest.raises(LogDamaged, match=said):
        await _poll_on(tail)
    await tail.close()


async def _poll_on(tail: Follower) -> None:
    while True:
        await tail.poll()


async def _take(lane: int, events: Sequence[Event], next_offset: int) -> None:
    """Take nothing in."""


async def _gateway_says(broker: Broker, tp: TopicPartition, said: str) -> None:
    config = KafkaSettings(broker.bootstrap_servers)
    tail = GatewayTail(config, [Start(tp.topic, 0)], _take)
    await tail.open()
    with pytest.raises(LogDamaged, match=said):
        await tail.run()
    await tail.close()
    reader = RecordReader(config)
    with pytest.raises(LogDamaged, match=said):
        await reader.read(tp, [1])
    await reader.close()
    past = KafkaPast(config, [tail.starts[0].tp])
    with pytest.raises(LogDamaged, match=said):
        async for _ in past.read({0: 0}):
            pass
    await past.close()


@pytest.mark.parametrize("error", [UnknownError(), KafkaStorageError()])
def test_broker_that_fails_by_itself_is_not_called_away(error: KafkaError) -> None:
    said = KafkaSettings("127.0.0.1:9").translate(error, "placet.trust")
    assert isinstance(said, LogFailing)
    assert str(said).startswith("Kafka answers but fails at placet.trust")
    assert "read its own log" in str(said)
    assert "start it" not in str(said)
