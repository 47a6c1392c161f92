"""A client's close ends, whatever its library does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer

from log.kafka.client import CLOSE_TIMEOUT_S, stop


class _Connections:
    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


class _Consumer:
    """A consumer that stops as it is told to."""

    def __init__(self, stopping: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._client = _Connections()
        self.stop = stopping


async def _cancels_its_own() -> None:
    # As aiokafka's fetcher does with a fetch that sleeps after an error.
    task = asyncio.create_task(asyncio.sleep(600))
    await asyncio.sleep(0)
    task.cancel()
    await task


async def test_stop_of_a_client_that_cancels_its_own_tasks_is_no_cancellation_of_ours() -> None:
    consumer = _Consumer(_cancels_its_own)
    await stop(cast(AIOKafkaConsumer, consumer))
    assert consumer._client.closed.is_set()


async def test_stop_that_is_cancelled_is_cancelled_and_cuts_the_connections_in_the_end() -> None:
    stops = asyncio.Event()

    async def never() -> None:
        stops.set()
        await asyncio.sleep(600)

    consumer = _Consumer(never)
    stopping = asyncio.create_task(stop(cast(AIOKafkaConsumer, consumer)))
    await stops.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
        await consumer._client.closed.wait()
