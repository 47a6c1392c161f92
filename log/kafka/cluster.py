"""What Kafka says about its topics: ids, partition counts, first offsets and high watermarks."""

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
# A topic that was created just now may not be known to every broker yet.
MISSING_FOR_S = 1.0
# A broker that answers so elects leaders: after its start, or for new topics, on a busy machine for long.
LEADERLESS_FOR_S = 60.0
LEADERLESS = (kafka_errors.NotLeaderForPartitionError, kafka_errors.LeaderNotAvailableError)
RETRY_EVERY_S = 0.1

T = TypeVar("T")
AskBounds = Callable[[TopicPartition], Awaitable[Bounds]]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as the cluster knows it; `leaders` has the broker of each partition, -1 for none."""

    topic_id: str
    leaders: Mapping[int, int]


class Cluster:
    """Asks the cluster about its topics; connects at the first question."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._client: AIOKafkaClient | None = None
        self._connecting = asyncio.Lock()

    async def topic(self, name: str) -> TopicInfo:
        """One topic, as it is now.

        Raises:
            TopicMissing: there is none.
            LogUnreachable: nobody answers.
        """
        return await self._retried(name, lambda client: _ask_topic(client, name))

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """The first offset and the high watermark of a partition.

        Raises:
            TopicMissing: there is none.
            LogUnreachable: nobody answers.
        """
        return await self._retried(tp.topic, lambda client: _ask_bounds(client, tp))

    async def brokers(self) -> list[str]:
        """The brokers as the cluster named them when it was first asked, as `host:port`.

        Raises:
            LogUnreachable: nobody answers.
        """
        client = await self._connected()
        return [f"{broker.host}:{broker.port}" for broker in sorted(client.cluster.brokers())]

    async def close(self) -> None:
        """Let go of the connections."""
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
        # Not retried: whoever has never been connected wants to hear at once that the address is wrong.
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
