"""A client's close ends, whatever its library does meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer

from log.kafka.client import CLOSE_TIMEOUT_S, stop
from ops.ports import free_port


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


_UNREACHABLE = """
import asyncio, sys
from log.errors import LogUnreachable
from log.kafka.client import KafkaSettings
from log.kafka.follower import Follower
from vitals.logs import log_to_stderr

async def opened(servers):
    follower = Follower(KafkaSettings(servers))
    try:
        await follower.open()
    except LogUnreachable:
        print("unreachable")

if len(sys.argv) > 2:
    log_to_stderr(sys.argv[2])
asyncio.run(opened(sys.argv[1]))
"""


@pytest.mark.parametrize("level", [[], ["WARNING"]])
def test_what_aiokafka_logs_is_in_a_log_and_not_among_the_errors_of_a_command(level: list[str]) -> None:
    command = [sys.executable, "-c", _UNREACHABLE, f"127.0.0.1:{free_port()}", *level]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert ended.stdout == "unreachable\n"
    assert ("Unable connect" in ended.stderr) == bool(level)
    assert bool(ended.stderr) == bool(level)
