"""The trust processor counts from its own position, wherever its group's offsets are."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError

from tests.processors.counted import counts_of, expected_of, produce_all, until_counted
from tests.processors.history import histories
from tests.processors.role import Role, newest_parts

pytestmark = pytest.mark.broker
WITHIN_S = 40.0

# Between the moment at which faust resumes the partitions and its seek, a fetch begins at the group's offsets.
SLOW_SEEK = """
import asyncio
from faust.transport.consumer import ThreadDelegateConsumer
seek = ThreadDelegateConsumer.seek_wait
async def seek_late(consumer, positions):
    await asyncio.sleep(1.0)
    await seek(consumer, positions)
ThreadDelegateConsumer.seek_wait = seek_late
"""


async def commit_ahead(role: Role, offset: int) -> None:
    """Move the group's offsets, as if a process had died between a commit and its checkpoint."""
    group = f"{role.topics.prefix}-trust"
    async with AIOKafkaConsumer(
        bootstrap_servers=role.bootstrap_servers, group_id=group, enable_auto_commit=False
    ) as consumer:
        tps = [TopicPartition(role.topics.executions, number) for number in range(role.partitions)]
        consumer.assign(tps)
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    await consumer.commit(dict.fromkeys(tps, offset))
                    return
                except CommitFailedError:
                    # Until the broker has given up the process that ended, only it may commit.
                    await asyncio.sleep(0.2)


async def test_trust_drops_what_is_delivered_before_its_seek(role: Role, seed: int) -> None:
    found = histories(role.partitions, 300, seed)
    await produce_all(role, found, stop=100)
    role.start()
    await until_counted(role, found, stop=100)
    # What it recovers from the table's topic keeps its fetcher running from then on.
    assert role.stop() == 0
    await produce_all(role, found, start=100)
    await commit_ahead(role, 200)
    role.prelude = SLOW_SEEK
    role.start()
    raws = await until_counted(role, found)
    assert counts_of(newest_parts(raws)) == expected_of(found)
    assert "starts again" not in role.log
    assert role.stop() == 0
