"""The gateway's Kafka clients: safe settings, and a close that ends.

aiokafka's defaults are unsafe (acks=1, no idempotence, auto-commit, `latest` for an offset that is gone), so
whatever matters is set by name, for aiokafka 0.14.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from log.kafka.voice import is_cancelled
from schemas.topics import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 2.0


class KafkaUnreachable(RuntimeError):
    """The cluster does not answer, or does not let us in; one sentence says what to do."""


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """Where the cluster is and how to sign in; `security` goes to every client as it is."""

    bootstrap_servers: str
    security: Mapping[str, Any] = field(default_factory=dict)
    append_timeout_ms: int = 10_000


def new_producer(config: KafkaConfig) -> AIOKafkaProducer:
    """An idempotent producer that is told of a batch only when every replica has it."""
    return AIOKafkaProducer(
        bootstrap_servers=config.bootstrap_servers,
        enable_idempotence=True,
        acks="all",
        linger_ms=0,
        compression_type=None,
        max_batch_size=MAX_MESSAGE_BYTES,
        max_request_size=MAX_MESSAGE_BYTES,
        request_timeout_ms=config.append_timeout_ms,
        **config.security,
    )


def new_consumer(config: KafkaConfig, *, fetch_bytes: int = 2 * MAX_MESSAGE_BYTES) -> AIOKafkaConsumer:
    """A consumer without a group, that never commits and never chooses an offset by itself.

    Args:
        config: the cluster.
        fetch_bytes: about how much one answer of the broker brings of a partition, at least one batch.
    """
    return AIOKafkaConsumer(
        bootstrap_servers=config.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        fetch_min_bytes=1,
        fetch_max_wait_ms=500,
        max_partition_fetch_bytes=fetch_bytes,
        **config.security,
    )


async def start(client: AIOKafkaProducer | AIOKafkaConsumer, config: KafkaConfig) -> None:
    """Start a client, or close it and say why it did not start.

    Raises:
        KafkaUnreachable: nobody answered in time, or we are not let in.
    """
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await client.start()
    except (KafkaError, OSError, TimeoutError) as error:
        await stop(client)
        raise KafkaUnreachable(
            f"Kafka does not answer at {config.bootstrap_servers} ({type(error).__name__} {error}): "
            "start it, or give the right address and security settings."
        ) from error


async def stop(client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
    """Stop a client within about two seconds, whatever is still under way."""
    connections = client.client if isinstance(client, AIOKafkaProducer) else client._client
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await client.stop()
    except (asyncio.CancelledError, KafkaError, OSError, TimeoutError) as error:
        # aiokafka awaits tasks that it cancelled itself: not every cancellation is one of this task.
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        logger.info(
            "a Kafka client did not stop by itself (%s): its connections are cut", type(error).__name__
        )
    finally:
        await connections.close()
