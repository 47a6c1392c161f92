"""Logs to test with, and what only a broker's administrator or a stranger can do to them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from log.errors import TopicMissing
from log.kafka.log import KafkaLog
from log.memory.log import MemoryLog
from log.places import TopicPartition
from log.port import CommandFeed, Log
from ops.config import StackConfig
from ops.topics import ensure_topics
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics

PARTITIONS = 3
PATIENCE_S = 90.0


def installation(world: KafkaWorld, directory: Path) -> StackConfig:
    """A stack's configuration over a log, of roles that something else runs."""
    return StackConfig(
        data_dir=str(directory),
        bootstrap_servers=world.bootstrap_servers,
        embedded_kafka=False,
        database_url="",
        gateway_port=0,
        url="",
        topic_prefix=world.log.topics.prefix,
        partitions=PARTITIONS,
    )


T = TypeVar("T")


class World(Protocol):
    """One log, and the means to treat it badly."""

    @property
    def log(self) -> Log: ...

    def another_log(self) -> Log: ...

    async def recreate(self, topic: str) -> None: ...

    async def delete_before(self, tp: TopicPartition, offset: int) -> None: ...

    async def leave_gap(self, tp: TopicPartition) -> None:
        """Append one record and then an offset that no reader sees."""
        ...


@dataclass
class MemoryWorld:
    log: MemoryLog

    def another_log(self) -> Log:
        return self.log

    async def recreate(self, topic: str) -> None:
        self.log.recreate(topic)

    async def delete_before(self, tp: TopicPartition, offset: int) -> None:
        self.log.partition(tp).delete_before(offset)

    async def leave_gap(self, tp: TopicPartition) -> None:
        await self.log.send(tp, record("before the gap"))
        self.log.partition(tp).skip(1)


@dataclass
class KafkaWorld:
    log: KafkaLog
    bootstrap_servers: str
    opened: list[KafkaLog] = field(default_factory=list)

    def another_log(self, append_timeout_ms: int = 10_000) -> KafkaLog:
        log = KafkaLog(self.bootstrap_servers, self.log.topics, append_timeout_ms=append_timeout_ms)
        self.opened.append(log)
        return log

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in (self.log, *self.opened)))

    async def recreate(self, topic: str) -> None:
        old = await self.log.topic_id(topic)
        async with self._admin() as admin:
            await admin.delete_topics([topic])
        await until(lambda: self._is_new(topic, old))

    async def delete_before(self, tp: TopicPartition, offset: int) -> None:
        async with self._admin() as admin:
            await admin.delete_records({KafkaPartition(*tp): RecordsToDelete(before_offset=offset)})

    async def leave_gap(self, tp: TopicPartition) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap_servers, transactional_id=f"gap-{tp.topic}-{tp.partition}"
        )
        _, end = await self.log.bounds(tp)
        async with producer, producer.transaction():
            await producer.send(tp.topic, b"before the gap", partition=tp.partition)
        # The transaction's end marker takes an offset, and is written after the commit was answered.
        await until(lambda: self._ends_at(tp, end + 2))

    @asynccontextmanager
    async def open_transaction(self, tp: TopicPartition) -> AsyncIterator[None]:
        """A transaction of another producer with one record in a partition; it is ended by leaving."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap_servers, transactional_id="another")
        async with producer, producer.transaction():
            await producer.send_and_wait(tp.topic, b"in a transaction", partition=tp.partition)
            yield

    async def _ends_at(self, tp: TopicPartition, end: int) -> bool:
        return (await self.log.bounds(tp))[1] == end

    async def _is_new(self, topic: str, old: str) -> bool:
        await ensure_topics(self.bootstrap_servers, topics=self.log.topics, partitions=PARTITIONS)
        try:
            return await self.log.topic_id(topic) != old
        except TopicMissing:
            # The old one was still there when it was to be made anew.
            return False

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()


@asynccontextmanager
async def memory_world() -> AsyncIterator[MemoryWorld]:
    ticks = itertools.count(1_700_000_000_000)
    log = MemoryLog(Topics(), PARTITIONS, lambda: next(ticks))
    yield MemoryWorld(log)
    await log.close()


@asynccontextmanager
async def kafka_world(bootstrap_servers: str, prefix: str) -> AsyncIterator[KafkaWorld]:
    topics = Topics(prefix)
    await ensure_topics(bootstrap_servers, topics=topics, partitions=PARTITIONS)
    world = KafkaWorld(KafkaLog(bootstrap_servers, topics), bootstrap_servers)
    try:
        yield world
    finally:
        await world.close()


def record(text: str, key: str = "key") -> OutRecord:
    return OutRecord(key.encode(), text.encode(), (("ce_id", text[:20].encode()),))


def records(*texts: str) -> list[OutRecord]:
    return [record(text) for text in texts]


def texts(found: Sequence[RawRecord]) -> list[str]:
    return [raw.value.decode() for raw in found]


async def read_all(log: Log, tp: TopicPartition) -> list[RawRecord]:
    return await read(log, tp, *await log.bounds(tp))


async def read(log: Log, tp: TopicPartition, start: int, stop: int) -> list[RawRecord]:
    async with asyncio.timeout(PATIENCE_S):
        return [raw async for chunk in log.read(tp, start, stop) for raw in chunk]


async def take(
    tail: AsyncGenerator[tuple[int, Sequence[RawRecord]], None], count: int
) -> list[tuple[int, str]]:
    """The first `count` records of a tail as (partition, text)."""
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(PATIENCE_S), aclosing(tail):
        async for partition, raws in tail:
            found += [(partition, text) for text in texts(raws)]
            if len(found) >= count:
                break
    return found


async def poll(feed: CommandFeed, count: int) -> list[str]:
    """Poll until `count` records came."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            for raws in (await feed.poll(100)).values():
                found += texts(raws)
    return found


async def polled_until(feeds: Sequence[CommandFeed], condition: Callable[[], bool]) -> list[str]:
    """Poll all feeds until the condition holds; what came meanwhile."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            for feed in feeds:
                for raws in (await feed.poll(20)).values():
                    found += texts(raws)
    return found


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until an asynchronous condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        # The other side of a socket has no event to wait for.
        while not await condition():
            await asyncio.sleep(0.05)
