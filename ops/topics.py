"""The topics on a cluster: made where missing, checked where they exist, never changed or deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from ops.errors import KafkaUnreachableError, OpsError, TopicMismatchError, TopicMissingError
from schemas.topics import DEFAULT_PARTITIONS, MAX_MESSAGE_BYTES, Topics, TopicSpec

REQUEST_TIMEOUT_MS = 15_000
VISIBLE_WITHIN_S = 60.0
POLL_S = 0.02


@asynccontextmanager
async def admin_client(
    bootstrap_servers: str, security: Mapping[str, Any] | None = None
) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connected admin client.

    Raises:
        KafkaUnreachableError: No broker answers.
    """
    admin = AIOKafkaAdminClient(
        bootstrap_servers=bootstrap_servers, request_timeout_ms=REQUEST_TIMEOUT_MS, **(security or {})
    )
    try:
        await admin.start()
        yield admin
    except (KafkaError, OSError) as error:
        raise KafkaUnreachableError(
            f"Kafka does not answer at {bootstrap_servers} ({type(error).__name__}): start it, or give the "
            "right --bootstrap-servers and security settings."
        ) from error
    finally:
        await admin.close()


async def ensure_topics(
    bootstrap_servers: str,
    *,
    topics: Topics | None = None,
    partitions: int | None = DEFAULT_PARTITIONS,
    replication_factor: int = 1,
    min_insync_replicas: int = 1,
    security: Mapping[str, Any] | None = None,
) -> int:
    """Create the topics that are missing, then check all of them.

    Args:
        bootstrap_servers: The cluster.
        topics: Their names; the product's own by default.
        partitions: Partitions of a topic whose specification leaves it open; fixed for the log's life. None takes
            what a log that is there has.
        replication_factor: Copies of each partition; 3 in production.
        min_insync_replicas: Copies that must have a batch before it is acknowledged; 2 in production.
        security: Extra settings of the client (SASL, TLS).

    Returns:
        The partitions of a topic whose specification leaves it open.

    Raises:
        KafkaUnreachableError: No broker answers, or it refuses to create them.
        TopicMismatchError: One exists with another partition count.
    """
    topics = topics or Topics()
    specs = topics.specs()
    names = [spec.name for spec in specs]
    async with admin_client(bootstrap_servers, security) as admin:
        there = await partition_counts(admin, names)
        count = partitions or there.get(topics.executions) or DEFAULT_PARTITIONS
        new = [
            _new_topic(spec, spec.partitions or count, replication_factor, min_insync_replicas)
            for spec in specs
            if spec.name not in there
        ]
        if new:
            _raise_refused(await admin.create_topics(new))
            there = await _wait_visible(admin, names)
    check_partitions(specs, there, count)
    return count


async def validate_topics(
    bootstrap_servers: str,
    *,
    topics: Topics | None = None,
    partitions: int = DEFAULT_PARTITIONS,
    security: Mapping[str, Any] | None = None,
) -> None:
    """Check that every topic exists with its partition count; changes nothing.

    Raises:
        KafkaUnreachableError: No broker answers.
        TopicMissingError: One does not exist.
        TopicMismatchError: One has another partition count.
    """
    specs = (topics or Topics()).specs()
    names = [spec.name for spec in specs]
    async with admin_client(bootstrap_servers, security) as admin:
        there = await partition_counts(admin, names)
    check_partitions(specs, there, partitions)


async def partition_counts(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    """Topic name → partition count, for those of the given names that exist."""
    described = await admin.describe_topics(list(names))
    return {found["topic"]: len(found["partitions"]) for found in described if _is_served(found)}


def _is_served(topic: Mapping[str, Any]) -> bool:
    return topic["error_code"] == 0 and all(found["error_code"] == 0 for found in topic["partitions"])


def check_partitions(specs: Sequence[TopicSpec], there: Mapping[str, int], partitions: int) -> None:
    """Raise for the first topic that is missing or has another partition count.

    Args:
        specs: The topics that must exist.
        there: Topic name → partition count on the cluster.
        partitions: The installation's count, for topics whose specification leaves it open.
    """
    for spec in specs:
        wanted = spec.partitions or partitions
        found = there.get(spec.name)
        if found is None:
            raise TopicMissingError(f"The topic {spec.name} does not exist: create it with placet up.")
        if found != wanted:
            raise TopicMismatchError(
                f"The topic {spec.name} has {found} partitions and {wanted} were asked for: the count is "
                f"fixed for the life of the log, so start with --partitions {found}."
            )


def settings_of(spec: TopicSpec, min_insync_replicas: int) -> dict[str, str]:
    """The topic's settings as the broker names them."""
    return {
        "cleanup.policy": spec.cleanup_policy,
        "retention.ms": str(spec.retention_ms),
        # Else a topic has its cluster's, and facts go from its front once there are so many.
        "retention.bytes": "-1",
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
        # What is compressed the broker unpacks, and holds against its limit of bytes: no reader needs a codec, and a
        # small batch cannot become a gigabyte in one.
        "compression.type": "uncompressed",
        "message.timestamp.type": "LogAppendTime" if spec.log_append_time else "CreateTime",
        # Kafka refuses batches stamped an hour ahead, so a decider whose clock is would never append again.
        # Nothing is decided by that stamp: the product's time is in its records.
        "message.timestamp.after.max.ms": str(2**63 - 1),
        "min.insync.replicas": str(min_insync_replicas),
        "unclean.leader.election.enable": "false",
        **({} if spec.segment_ms is None else {"segment.ms": str(spec.segment_ms)}),
    }


async def _wait_visible(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    """A created topic reaches the broker's own metadata a moment after the answer to its creation."""
    deadline = time.monotonic() + VISIBLE_WITHIN_S
    while True:
        there = await partition_counts(admin, names)
        if len(there) == len(names) or time.monotonic() > deadline:
            return there
        await asyncio.sleep(POLL_S)


def _new_topic(spec: TopicSpec, partitions: int, replication_factor: int, min_insync: int) -> NewTopic:
    return NewTopic(spec.name, partitions, replication_factor, topic_configs=settings_of(spec, min_insync))


def _raise_refused(response: Any) -> None:
    for name, code, message in response.topic_errors:
        error = for_code(code)
        if code != 0 and error is not TopicAlreadyExistsError:
            raise OpsError(
                f"Kafka refused to create the topic {name} ({message or error.__name__}): fix that first."
            )
