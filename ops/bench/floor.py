"""The floor: what Kafka alone costs here, with the client that Placet uses and the settings that it needs.

A hop is one record produced (idempotent, acks=all, linger 0) and consumed, on one of 12 partitions. A gated call
needs two: the command to the decider, the events back. The process between them is a real one, as the decider is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from ops.bench.bench import Bench
from ops.bench.result import Figure, Result, percentile
from ops.bench.site import Site
from ops.topics import admin_client

PARTITIONS = 12
RECORD = bytes(300)
ROUNDS = 3
VISIBLE_WITHIN_S = 15.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Floor:
    """An open pair of hops, and a topic to fill."""

    producer: AIOKafkaProducer
    consumer: AIOKafkaConsumer
    asked: str
    filled: str

    async def hops(self, count: int) -> list[float]:
        """Times of so many records there and back, one after the other, in ms."""
        times = []
        for number in range(count):
            began = time.perf_counter()
            await self.producer.send(self.asked, RECORD, partition=number % PARTITIONS)
            await self.consumer.getone()
            times.append((time.perf_counter() - began) * 1e3)
        return times

    async def produce_rate(self, count: int) -> float:
        """Records a second, produced as fast as they are taken and acknowledged one by one."""
        began = time.perf_counter()
        sent = [
            await self.producer.send(self.filled, RECORD, partition=number % PARTITIONS)
            for number in range(count)
        ]
        await asyncio.gather(*sent)
        return count / (time.perf_counter() - began)


@asynccontextmanager
async def opened_floor(site: Site) -> AsyncIterator[Floor]:
    """Topics of their own on the stack's broker, a relay process, and clients."""
    start = f"bench-{uuid.uuid4().hex[:8]}"
    asked, answered, filled = (f"{start}.{name}" for name in ("asked", "answered", "filled"))
    await _create(site, (asked, answered, filled))
    relay = await _start_relay(site, asked, answered)
    producer = new_producer(site)
    consumer = await new_consumer(site, answered)
    await producer.start()
    try:
        yield Floor(producer, consumer, asked, filled)
    finally:
        await producer.stop()
        await consumer.stop()
        assert relay.stdin is not None
        relay.stdin.close()
        await relay.wait()


def new_producer(site: Site) -> AIOKafkaProducer:
    """A producer as safe as Placet's own."""
    return AIOKafkaProducer(
        bootstrap_servers=site.bootstrap_servers,
        enable_idempotence=True,
        acks="all",
        linger_ms=0,
        **site.security,
    )


async def new_consumer(site: Site, topic: str) -> AIOKafkaConsumer:
    """A started consumer that stands at the end of every partition of a topic."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=site.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        **site.security,
    )
    await consumer.start()
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    ends = await consumer.end_offsets(partitions)
    consumer.assign(partitions)
    for partition, end in ends.items():
        consumer.seek(partition, end)
    return consumer


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """Measure hops and the rate of producing, in turns."""
    site = Site(**job["site"])
    times: list[float] = []
    rates: list[float] = []
    async with opened_floor(site) as floor:
        await floor.hops(job["warm"])
        await floor.produce_rate(job["records"] // 4)
        for _ in range(ROUNDS):
            times += await floor.hops(job["hops"] // ROUNDS)
            rates.append(await floor.produce_rate(job["records"]))
    return {"p50": percentile(times, 50), "p99": percentile(times, 99), "rate": median(rates)}


def measure(bench: Bench) -> Result:
    """The floor by itself."""
    found = bench.load(
        "ops.bench.floor:load",
        "two hops, and producing",
        warm=bench.size(300, 50),
        hops=bench.size(1_500, 150),
        records=bench.size(60_000, 500),
    )
    return Result(
        "floor",
        (
            Figure("two raw hops, p50", found["p50"], "ms"),
            Figure("two raw hops, p99", found["p99"], "ms"),
            Figure("raw idempotent producing", found["rate"], "records/s"),
        ),
    )


async def _create(site: Site, names: tuple[str, ...]) -> None:
    async with admin_client(site.bootstrap_servers, site.security) as admin:
        await admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
        async with asyncio.timeout(VISIBLE_WITHIN_S):
            while True:
                described = await admin.describe_topics(list(names))
                if not any(found["error_code"] for found in described):
                    return
                await asyncio.sleep(POLL_S)


async def _start_relay(site: Site, asked: str, answered: str) -> asyncio.subprocess.Process:
    relay = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ops.bench.relay", asked, answered),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert relay.stdin is not None
    assert relay.stdout is not None
    relay.stdin.write(json.dumps(asdict(site)).encode() + b"\n")
    if await relay.stdout.readline() != b"ready\n":
        raise RuntimeError("the floor's relay did not start")
    return relay
