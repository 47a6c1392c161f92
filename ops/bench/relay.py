"""The process between the floor's two hops, where the decider stands: it passes on what it reads.

python -m ops.bench.relay FROM TO reads the site (JSON, one line), says `ready`, and ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import sys

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from ops.bench.floor import new_consumer, new_producer
from ops.bench.site import Site


async def relay(site: Site, source: str, target: str) -> None:
    """Pass records on until the input ends."""
    producer = new_producer(site)
    await producer.start()
    consumer = await new_consumer(site, source)
    passing = asyncio.create_task(_pass_on(consumer, producer, target))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait({passing, ended}, return_when=asyncio.FIRST_COMPLETED)
    passing.cancel()
    await asyncio.wait({passing})
    await consumer.stop()
    await producer.stop()


async def _pass_on(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, target: str) -> None:
    while True:
        for partition, records in (await consumer.getmany(timeout_ms=500)).items():
            for record in records:
                await producer.send(target, record.value, partition=partition.partition)


if __name__ == "__main__":
    uvloop.run(relay(Site(**json.loads(sys.stdin.readline())), *sys.argv[1:3]))
