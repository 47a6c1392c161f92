"""Queries about the cluster itself: whether its topics are those of this installation, and which brokers answer."""

from __future__ import annotations

import asyncio

from log.completeness import check_count
from log.kafka.client import KafkaSettings
from log.kafka.cluster import Cluster
from log.kafka.log import KafkaLog
from schemas.topics import Topics

ASK_TIMEOUT_S = 2.0


async def check_topics(config: KafkaSettings, topics: Topics, partitions: int) -> None:
    """Check that every topic that a gateway uses exists with its number of partitions; it may see no other topics.

    With another number, a command would be sent to a partition whose decider does not expect its key, and events
    would be missed.

    Args:
        config: the cluster.
        topics: their names.
        partitions: the installation's number, for topics whose specification leaves it open.

    Raises:
        LogUnreachable: Kafka does not answer.
        TopicMissing: a topic does not exist.
        PartitionsDiffer: one has another number of partitions.
    """
    written = topics.commands, topics.definition_commands
    used = {*written, topics.executions, topics.definitions, topics.trust}
    log = KafkaLog(config.bootstrap_servers, topics, config.security)
    try:
        for spec in topics.specs():
            if spec.name in used:
                await check_count(log, spec.name, spec.partitions or partitions)
    finally:
        await log.close()


async def broker_addresses(config: KafkaSettings) -> list[str]:
    """Return the brokers of the cluster, as `host:port`.

    Raises:
        LogUnreachable: Kafka does not answer now.
    """
    cluster = Cluster(config)
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            return await cluster.brokers()
    except TimeoutError as error:
        raise config.translate(error) from error
    finally:
        await cluster.close()
