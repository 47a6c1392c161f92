"""A stack that was stopped for longer than commands are kept: its deciders read the last of them before they go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ops.kafka import settings
from ops.kafka.broker import Broker, BrokerConfig

OLD = TopicPartition("old", 0)
DELAY = "log.initial.task.delay.ms"
# Kafka's own is 30 s, and a stack may take longer than that to start.
KAFKAS_S = 30
ENOUGH_MS = 5 * 60 * 1000


async def fill(address: str) -> None:
    """A topic whose records are past their retention as soon as they are written."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(OLD.topic, 1, 1, topic_configs={"retention.ms": "1"})])
    finally:
        await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=address, acks="all") as producer:
        await producer.send_and_wait(OLD.topic, b"asked", partition=0)


async def until_deleted(address: str) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=address) as consumer:
        while (await consumer.beginning_offsets([OLD]))[OLD] == 0:
            await asyncio.sleep(0.1)


@pytest.mark.broker
async def test_kafka_deletes_nothing_before_the_delay_that_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told of none it deletes at once, and long before its own: so it heeds ours, which is far longer."""
    assert int(settings._FIXED[DELAY]) >= ENOUGH_MS
    monkeypatch.setitem(settings._FIXED, DELAY, "0")
    # Just after a start it knows no record to be on every replica, and deletes none.
    monkeypatch.setitem(settings._FIXED, "log.retention.check.interval.ms", "500")
    broker = Broker(BrokerConfig(tmp_path, access=None))
    broker.start()
    try:
        await fill(broker.bootstrap_servers)
        broker.stop()
        broker.start()
        async with asyncio.timeout(KAFKAS_S / 2):
            await until_deleted(broker.bootstrap_servers)
    finally:
        broker.stop()
