"""Where the log of an installation ends, for what is settled before any role starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from log.kafka.log import KafkaLog
from log.places import TopicPartition
from log.port import Log
from ops.config import StackConfig
from ops.kafka.acl import INSTALLATION
from ops.kafka.security import client_settings
from schemas.topics import Topics


@asynccontextmanager
async def opened_log(config: StackConfig, principal: str = INSTALLATION) -> AsyncIterator[Log]:
    """The log of an installation; errors as `Log`.

    Args:
        config: the installation's.
        principal: who looks.
    """
    log = KafkaLog(
        config.bootstrap_servers,
        Topics(prefix=config.topic_prefix),
        client_settings(config.kafka_settings_of(principal)),
    )
    try:
        yield log
    finally:
        await log.close()


async def topic_bounds(log: Log, topic: str) -> tuple[tuple[int, int], ...]:
    """The first offset of each partition, and one past the last; errors as `Log`."""
    return tuple(
        [await log.bounds(TopicPartition(topic, n)) for n in range(await log.partition_count(topic))]
    )


async def topic_ends(log: Log, topic: str) -> tuple[int, ...]:
    """One past the last record of each partition; errors as `Log`."""
    return tuple(end for _, end in await topic_bounds(log, topic))
