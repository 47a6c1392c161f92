"""A process as the log sees it: awake, paused (SIGSTOP) or dead, and its log over a bad network.

A process that is paused does nothing, and one that was killed never says anything again; what it had already
sent is on its way and may land. Both are true as soon as every way to the log is closed, since a process has
no other way to change anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from log.errors import AppendFailed, LogUnreachable
from log.memory.feed import MemoryFeed
from log.memory.log import MemoryLog
from log.memory.storage import check_batch
from log.places import Bounds, TopicPartition
from schemas.record import OutRecord, RawRecord
from schemas.topics import Topics
from tests.simulation.faults import Faults

REWIND_MAX = 30


@dataclass
class Process:
    """One operating system process."""

    name: str
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    dead: bool = False
    feed: MemoryFeed | None = None

    def __post_init__(self) -> None:
        self.awake.set()

    async def proceed(self) -> None:
        """Go on as soon as the process runs; never again once it is dead."""
        await self.awake.wait()
        if self.dead:
            # Whatever it was about to do next, it does not: the same as a task that is cancelled here.
            raise asyncio.CancelledError(f"{self.name} was killed")


@dataclass
class ProcessLog:
    """The log as one process reaches it (`log.port.Log`)."""

    log: MemoryLog
    process: Process
    faults: Faults

    @property
    def topics(self) -> Topics:
        return self.log.topics

    async def topic_id(self, topic: str) -> str:
        await self._over_the_network()
        return await self.log.topic_id(topic)

    async def partition_count(self, topic: str) -> int:
        await self._over_the_network()
        return await self.log.partition_count(topic)

    async def bounds(self, tp: TopicPartition) -> Bounds:
        await self._over_the_network()
        found = await self.log.bounds(tp)
        await self._wait()
        return found

    async def read(
        self, tp: TopicPartition, start: int, stop: int
    ) -> AsyncGenerator[Sequence[RawRecord], None]:
        await self._over_the_network()
        async with aclosing(self.log.read(tp, start, stop)) as chunks:
            async for chunk in chunks:
                yield chunk
                await self._wait()

    async def tail(
        self, topic: str, starts: Mapping[int, int]
    ) -> AsyncGenerator[tuple[int, Sequence[RawRecord]], None]:
        await self._over_the_network()
        async with aclosing(self.log.tail(topic, starts)) as chunks:
            async for chunk in chunks:
                await self._wait()
                yield chunk

    async def appender(self) -> ProcessAppender:
        await self._over_the_network()
        return ProcessAppender(self)

    async def send(self, tp: TopicPartition, record: OutRecord) -> int:
        check_batch(tp, [record])
        await self._wait()
        if self.faults.hit("send_twice"):
            self.log.land(tp, [record])
        if self.faults.hit("unreachable"):
            if self.faults.rng.random() < 0.5:
                self.log.land(tp, [record])
            raise LogUnreachable("simulation", "no answer to a send")
        offset = self.log.land(tp, [record])
        await self._wait()
        return offset

    async def send_stamped(self, tp: TopicPartition, record: OutRecord) -> int:
        offset = await self.send(tp, record)
        return self.log.partition(tp).slice(offset, offset + 1)[0].timestamp_ms

    async def feed(self, group: str, member: str, topics: Sequence[str]) -> ProcessFeed:
        await self._over_the_network()
        feed = await self.log.feed(group, member, topics)
        self.process.feed = feed
        return ProcessFeed(feed, self.process, self.faults)

    async def close(self) -> None:
        """The log is the world's; a process only goes away."""

    async def _wait(self) -> None:
        await self.process.proceed()
        await asyncio.sleep(self.faults.latency_s())
        await self.process.proceed()

    async def _over_the_network(self) -> None:
        await self._wait()
        if self.faults.hit("unreachable"):
            raise LogUnreachable("simulation", "no answer")


@dataclass
class ProcessAppender:
    """Batches of one process (`log.port.Appender`); some time out, and then nobody knows."""

    reached: ProcessLog
    spoiled: str = ""

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        check_batch(tp, records)
        self._check(tp)
        try:
            return await self._append(tp, records)
        except asyncio.CancelledError:
            self.spoiled = "an append was cancelled"
            raise

    async def abandon(self) -> None:
        self.spoiled = self.spoiled or "it was abandoned"

    async def _append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        log, faults, process = self.reached.log, self.reached.faults, self.reached.process
        await self.reached._wait()
        self._check(tp)
        fate = faults.append_fate()
        base = log.land(tp, records) if fate in ("landed", "answer_lost") else -1
        if fate == "late":
            later_s = faults.rng.uniform(0.1, 40.0)
            asyncio.get_running_loop().call_later(later_s, log.land, tp, tuple(records))
        if fate != "landed":
            await asyncio.sleep(faults.rng.uniform(0.5, 10.0))
            await process.proceed()
            self.spoiled = "no answer in time"
            raise AppendFailed(tp, self.spoiled)
        await self.reached._wait()
        return base

    def _check(self, tp: TopicPartition) -> None:
        if self.spoiled:
            raise AppendFailed(tp, self.spoiled)


@dataclass
class ProcessFeed:
    """Commands as one member of the group gets them (`log.port.CommandFeed`), some of them again."""

    inner: MemoryFeed
    process: Process
    faults: Faults

    async def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[RawRecord]]:
        await self.process.proceed()
        found = await self.inner.poll(timeout_ms)
        for tp, records in found.items():
            if self.faults.hit("redelivers"):
                back = self.faults.rng.randint(1, REWIND_MAX)
                self.inner.start_from(tp, max(0, records[0].offset - back))
        return found

    def assignment(self) -> frozenset[TopicPartition]:
        return self.inner.assignment()

    def behind(self) -> int:
        return self.inner.behind()

    def held_back(self) -> Mapping[TopicPartition, int]:
        return self.inner.held_back()

    def start_from(self, tp: TopicPartition, offset: int) -> None:
        self.inner.start_from(tp, offset)

    def pause(self, tp: TopicPartition) -> None:
        self.inner.pause(tp)

    def resume(self, tp: TopicPartition) -> None:
        self.inner.resume(tp)

    async def close(self) -> None:
        await self.process.proceed()
        await self.inner.close()
