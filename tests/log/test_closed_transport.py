"""A connection of Kafka that was lost under uvloop is a broken connection, and no other error."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from log.errors import LogUnreachable
from log.kafka.client import KafkaSettings
from log.kafka.closed_transport import is_closed_transport
from log.kafka.follower import opened
from log.places import Bounds, TopicPartition
from ops.topics import ensure_topics
from schemas.topics import Topics
from tests.log.connections import lose_all


async def _write_after_the_end() -> BaseException | None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, writer = await asyncio.open_connection(*server.getsockname()[:2])
        writer.transport.abort()
        await writer.wait_closed()
        try:
            writer.write(b"late")
        except Exception as error:
            return error
    return None


def test_what_uvloop_raises_for_a_closed_transport_is_recognised() -> None:
    error = uvloop.run(_write_after_the_end())

    assert type(error) is RuntimeError
    assert is_closed_transport(error)


def test_asyncio_itself_raises_nothing_and_other_runtime_errors_are_not_taken_for_it() -> None:
    assert asyncio.run(_write_after_the_end()) is None
    for other in (
        RuntimeError("the handler is closed"),
        RuntimeError(),
        OSError("closed=True"),
        RecursionError(),
    ):
        assert not is_closed_transport(other)


@pytest.mark.broker
def test_follower_whose_connection_was_lost_connects_again(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)

    async def asked() -> tuple[dict[TopicPartition, int], dict[TopicPartition, Bounds], int]:
        await ensure_topics(kafka, topics=topics, partitions=1)
        tp = TopicPartition(topics.executions, 0)
        async with opened(KafkaSettings(kafka)) as follower:
            client = follower._consumer._client
            await follower.ends([tp])
            await lose_all(client)
            ends = await follower.ends([tp])
            await lose_all(client)
            bounds = await follower.bounds([tp])
            await lose_all(client)
            # All known brokers were asked once: whether to ask again is left to the caller.
            with pytest.raises(LogUnreachable, match="cluster metadata"):
                await follower.partitions(tp.topic)
            return ends, bounds, len(await follower.partitions(tp.topic))

    ends, bounds, partitions = uvloop.run(asked())

    assert list(ends.values()) == [0]
    assert list(bounds.values()) == [Bounds(0, 0)]
    assert partitions == 1


@pytest.mark.broker
def test_request_on_a_lost_connection_is_refused_as_one_on_a_broken_connection(kafka: str) -> None:
    async def asked() -> None:
        client = KafkaSettings(kafka).client()
        await client.bootstrap()
        try:
            node = client.get_random_node()
            assert await client.ready(node)
            await lose_all(client)
            await client.send(node, MetadataRequest([]))
        finally:
            await client.close()

    with pytest.raises(KafkaConnectionError, match="broken: unable to perform operation"):
        uvloop.run(asked())
