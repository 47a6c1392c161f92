"""The log on Kafka, with aiokafka.

The details of its parts are described in `log.kafka.appender`, `feed`, `reader`, `cluster` and `client`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from log.errors import AppendFailed, LogUnreachable, TopicMissing
from log.kafka.appender import AppendedBatch, KafkaAppender, open_appender
from log.kafka.client import KafkaSettings
from log.kafka.cluster import Cluster
from log.kafka.feed import KafkaFeed, open_feed
from log.kafka.reader import KafkaReader
from log.places import Bounds, TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics

SEND_FOR_S = 30.0
SEND_AGAIN_AFTER_S = 0.1


class KafkaLog:
    """See `Log`. Connects at first use.

    Args:
        bootstrap_servers: host:port, several separated by commas.
        topics: the names of its topics.
        settings: extra settings of every client (`security_protocol`, `sasl_…`, `ssl_context`).
        append_timeout_ms: the time after which the outcome of an append counts as unknown.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Topics,
        settings: Mapping[str, Any] = MappingProxyType({}),
        *,
        append_timeout_ms: int = 10_000,
    ) -> None:
        self._topics = topics
        self._settings = KafkaSettings(bootstrap_servers, settings, append_timeout_ms)
        self._cluster = Cluster(self._settings)
        self._reader = KafkaReader(self._settings, self._cluster)
        self._appenders: set[KafkaAppender] = set()
        self._feeds: set[KafkaFeed] = set()
        self._sender: KafkaAppender | None = None
        self._choosing_sender = asyncio.Lock()
        self._known: set[TopicPartition] = set()
        self._closed = False

    @property
    def topics(self) -> Topics:
        """The names of its topics."""
        return self._topics

    async def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        self._check_open()
        return (await self._cluster.topic(topic)).topic_id

    async def partition_count(self, topic: str) -> int:
        """See `Log.partition_count`."""
        self._check_open()
        return len((await self._cluster.topic(topic)).leaders)

    async def bounds(self, tp: TopicPartition) -> Bounds:
        """See `Log.bounds`."""
        self._check_open()
        return await self._cluster.bounds(tp)

    def read(self, tp: TopicPartition, start: int, stop: int) -> AsyncGenerator[Sequence[RawRecord], None]:
        """See `Log.read`."""
        self._check_open()
        return self._reader.read(tp, start, stop)

    def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        """See `Log.tail`."""
        self._check_open()
        return self._reader.tail(topic, starts)

    async def appender(self) -> KafkaAppender:
        """See `Log.appender`."""
        self._check_open()
        appender = await open_appender(self._settings, self._appenders.discard)
        self._appenders.add(appender)
        return appender

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        """See `Log.send`."""
        return (await self._send(tp, record)).offset

    async def send_stamped(self, tp: TopicPartition, record: OutRecord) -> int:
        """See `Log.send_stamped`."""
        return (await self._send(tp, record)).at_ms

    async def _send(self, tp: TopicPartition, record: OutRecord) -> AppendedBatch:
        await self._check_exists(tp)
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + SEND_FOR_S
        while True:
            try:
                return await (await self._choose_sender()).land(tp, [record])
            except (AppendFailed, LogUnreachable) as error:
                self._check_open()
                if loop.time() > give_up_at:
                    raise LogUnreachable(self._settings.bootstrap_servers, str(error)) from error
                await asyncio.sleep(SEND_AGAIN_AFTER_S)

    async def feed(self, group: str, member: str, topics: Sequence[str]) -> KafkaFeed:
        """See `Log.feed`."""
        self._check_open()
        for topic in topics:
            await self._cluster.topic(topic)
        feed = await open_feed(
            self._settings, self._cluster.bounds, group, member, topics, self._feeds.discard
        )
        self._feeds.add(feed)
        return feed

    async def close(self) -> None:
        """See `Log.close`."""
        self._closed = True
        await asyncio.gather(
            *(feed.close() for feed in list(self._feeds)),
            *(appender.abandon() for appender in list(self._appenders)),
            self._reader.close(),
            self._cluster.close(),
        )

    async def _choose_sender(self) -> KafkaAppender:
        async with self._choosing_sender:
            if self._sender is not None and self._sender.is_spoiled:
                await self._sender.abandon()
                self._sender = None
            if self._sender is None:
                self._sender = await self.appender()
            return self._sender

    async def _check_exists(self, tp: TopicPartition) -> None:
        self._check_open()
        if tp not in self._known:
            if tp.partition not in (await self._cluster.topic(tp.topic)).leaders:
                raise TopicMissing(tp.topic)
            self._known.add(tp)

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnreachable(self._settings.bootstrap_servers, "the log is closed")
