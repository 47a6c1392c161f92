"""Case 25: what a stranger's client compressed is read as any other record, and unpacks to no more than the limit."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from log.places import TopicPartition
from ops.topics import admin_client
from schemas.topics import MAX_MESSAGE_BYTES
from tests.log.logs import KafkaWorld, poll, read_all, texts

pytestmark = pytest.mark.broker

CODECS = ("gzip", "snappy", "lz4", "zstd")
LARGE = 2 * MAX_MESSAGE_BYTES


async def _send(world: KafkaWorld, tp: TopicPartition, codec: str, value: bytes) -> None:
    limits = {"max_batch_size": 2 * LARGE, "max_request_size": 2 * LARGE}
    servers = world.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=servers, compression_type=codec, **limits) as stranger:
        await stranger.send_and_wait(tp.topic, value, partition=tp.partition)


async def _let_compressed_be(world: KafkaWorld, topic: str) -> None:
    """The topic as an earlier version made it."""
    setting = ConfigResource(ConfigResourceType.TOPIC, topic, {"compression.type": "producer"})
    async with admin_client(world.bootstrap_servers) as admin:
        await admin.alter_configs([setting])


@pytest.mark.parametrize("as_before", [False, True], ids=["unpacked by the broker", "as it was sent"])
async def test_case_25_compressed_commands_are_read(kafka_log_world: KafkaWorld, as_before: bool) -> None:
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.commands, 0)
    if as_before:
        await _let_compressed_be(kafka_log_world, tp.topic)
    feed = await log.feed("group", "worker", [tp.topic])
    feed.start_from(tp, 0)
    for codec in CODECS:
        await _send(kafka_log_world, tp, codec, codec.encode() * 1_000)
    assert await poll(feed, len(CODECS)) == [codec * 1_000 for codec in CODECS]
    assert texts(await read_all(log, tp)) == [codec * 1_000 for codec in CODECS]


@pytest.mark.parametrize("codec", CODECS)
async def test_case_30_small_batch_that_unpacks_to_much_is_refused(
    kafka_log_world: KafkaWorld, codec: str
) -> None:
    log = kafka_log_world.log
    tp = TopicPartition(log.topics.commands, 0)
    with pytest.raises(MessageSizeTooLargeError):
        await _send(kafka_log_world, tp, codec, bytes(LARGE))
    assert await log.bounds(tp) == (0, 0)
