"""Metadata of Kafka's topics: ids, partition counts, first offsets and high watermarks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.offset import OffsetRequest

from log.kafka.client import KafkaSettings, finish
from log.kafka.metadata import TopicRequest
from log.places import Bounds, TopicPartition

READ_COMMITTED = 1
EARLIEST, LATEST = -2, -1
RETRY_FOR_S = 10.0
# Some brokers may not have the metadata of a newly created topic yet.
MISSING_FOR_S = 1.0
# Leaders are being elected, after a broker's start or for new topics; on a busy machine that can take long.
LEADERLESS_FOR_S = 60.0
LEADERLESS = (kafka_errors.NotLeaderForPartitionError, kafka_errors.LeaderNotAvailableError)
RETRY_EVERY_S = 0.1

T = TypeVar("T")
AskBounds = Callable[[TopicPartition], Awaitable[Bounds]]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic's metadata; `leaders` has the leading broker of each partition, -1 for none."""

    topic_id: str
    leaders: Mapping[int, int]


class Cluster:
    """Reads the metadata of the cluster's topics; connects at the first request."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._client: AIOKafkaClient | None = None
        self._connecting = asyncio.Lock()

    async def topic(self, name: str) -> TopicInfo:
        """The current metadata of one topic.

        Raises:
            TopicMissing: there is no such topic.
            LogUnreachable: the cluster does not answer.
        """
        return await self._retried(name, lambda client: _ask_topic(client, name))

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """The first offset and the high watermark of a partition.

        Raises:
            TopicMissing: there is no such partition.
            LogUnreachable: the cluster does not answer.
        """
        return await self._retried(tp.topic, lambda client: _ask_bounds(client, tp))

    async def brokers(self) -> list[str]:
        """The brokers in the cluster's first metadata, as `host:port`.

        Raises:
            LogUnreachable: the cluster does not answer.
        """
        client = await self._connected()
        return [f"{broker.host}:{broker.port}" for broker in sorted(client.cluster.brokers())]

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await finish(client.close())

    async def _retried(self, topic: str, ask: Callable[[AIOKafkaClient], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                return await ask(await self._connected())
            except (kafka_errors.KafkaError, OSError, NotImplementedError) as error:
                if not getattr(error, "retriable", False) or loop.time() - began > _patience_s(error):
                    raise self._settings.translate(error, topic) from error
                await asyncio.sleep(RETRY_EVERY_S)

    async def _connected(self) -> AIOKafkaClient:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> AIOKafkaClient:
        # Not retried, so that a wrong address is reported at once at the first connection.
        client = self._settings.client()
        try:
            await client.bootstrap()
        except BaseException as error:
            await finish(client.close())
            if isinstance(error, kafka_errors.KafkaError | OSError):
                raise self._settings.translate(error) from error
            raise
        return client


def _patience_s(error: Exception) -> float:
    if isinstance(error, kafka_errors.UnknownTopicOrPartitionError):
        return MISSING_FOR_S
    return LEADERLESS_FOR_S if isinstance(error, LEADERLESS) else RETRY_FOR_S


async def _ask_topic(client: AIOKafkaClient, name: str) -> TopicInfo:
    response = await client.send(client.get_random_node(), TopicRequest(name))
    (error_code, _, topic_id, _, partitions, *_) = response.topics[0]
    _raise_for(error_code)
    return TopicInfo(str(topic_id), {number: leader for _, number, leader, *_ in partitions})


async def _ask_bounds(client: AIOKafkaClient, tp: TopicPartition) -> Bounds:
    leader = (await _ask_topic(client, tp.topic)).leaders.get(tp.partition)
    if leader is None:
        raise kafka_errors.UnknownTopicOrPartitionError
    if leader < 0:
        raise kafka_errors.LeaderNotAvailableError
    first, end = await asyncio.gather(*(_ask_offset(client, leader, tp, at) for at in (EARLIEST, LATEST)))
    return Bounds(first, end)


async def _ask_offset(client: AIOKafkaClient, node: int, tp: TopicPartition, at: int) -> int:
    request = OffsetRequest(-1, READ_COMMITTED, [(tp.topic, [(tp.partition, at)])])
    response = await client.send(node, request)
    (_, error_code, _, offset) = response.topics[0][1][0]
    _raise_for(error_code)
    return int(offset)


def _raise_for(error_code: int) -> None:
    if error_code:
        raise kafka_errors.for_code(error_code)
