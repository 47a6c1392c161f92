"""A log made by hand, on a real Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaProducer

from schemas.record import RawRecord

DEADLINE_S = 60.0


async def produce(bootstrap_servers: str, topic: str, logs: Sequence[Sequence[RawRecord]]) -> None:
    """Append records to their partitions, in order."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", enable_idempotence=True)
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                key=raw.key,
                value=raw.value,
                headers=list(raw.headers),
                partition=raw.partition,
            )
            for records in logs
            for raw in records
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: it did not in time.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + DEADLINE_S
    while not condition():
        assert loop.time() < give_up_at, f"not in time: {what}"
        await asyncio.sleep(0.02)
