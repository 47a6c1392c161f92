"""The cluster as it says of itself: whether its topics are those of this installation, and which brokers answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import KafkaError

from log.errors import PartitionsDiffer, TopicMissing
from log.kafka.client import START_TIMEOUT_S, KafkaSettings, start, stop
from schemas.topics import Topics

ASK_TIMEOUT_S = 2.0


async def check_topics(config: KafkaSettings, topics: Topics, partitions: int) -> None:
    """Check that every topic that a gateway uses exists with its partition count; it may see no others.

    With another count a command would be sent where no decider looks for its key, and events would be missed.

    Args:
        config: the cluster.
        topics: their names.
        partitions: the installation's count, for topics whose specification leaves it open.

    Raises:
        LogUnreachable: nobody answers.
        TopicMissing: a topic does not exist.
        PartitionsDiffer: one has another partition count.
    """
    written = topics.commands, topics.definition_commands
    used = {*written, topics.executions, topics.definitions, topics.trust}
    async with _metadata(config, START_TIMEOUT_S) as cluster:
        for spec in topics.specs():
            if spec.name not in used:
                continue
            found = len(cluster.partitions_for_topic(spec.name) or ())
            wanted = spec.partitions or partitions
            if not found:
                raise TopicMissing(spec.name)
            if found != wanted:
                raise PartitionsDiffer(spec.name, found, wanted)


async def broker_addresses(config: KafkaSettings) -> list[str]:
    """The brokers of the cluster, as `host:port`.

    Raises:
        LogUnreachable: nobody answers now.
    """
    async with _metadata(config, ASK_TIMEOUT_S) as cluster:
        return [f"{broker.host}:{broker.port}" for broker in sorted(cluster.brokers())]


@asynccontextmanager
async def _metadata(config: KafkaSettings, timeout_s: float) -> AsyncIterator[ClusterMetadata]:
    consumer: AIOKafkaConsumer = config.reader()
    try:
        async with asyncio.timeout(timeout_s):
            await start(consumer, config)
            cluster = await consumer._client.fetch_all_metadata()
    except (KafkaError, OSError, TimeoutError) as error:
        raise config.translate(error) from error
    finally:
        await stop(consumer)
    yield cluster
