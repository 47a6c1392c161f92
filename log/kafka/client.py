"""The common parts of every Kafka client: safe settings, typed errors, and a close in bounded time.

aiokafka's defaults are unsafe: acks=1, no idempotence, auto-commit, `latest` for a deleted offset, and a 16 KB batch.
Every setting that matters is set here explicitly, for aiokafka 0.14.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient

from log.errors import (
    LogDamaged,
    LogError,
    LogFailing,
    LogRefused,
    LogUnreachable,
    TopicForbidden,
    TopicMissing,
)
from log.kafka.closed_transport import handle_closed_transports
from log.kafka.damage import damage, failure, is_damage, is_failure
from schemas.topics import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 2.0
MAX_RECORDS = 1000
# A dead member is removed from its group after the session timeout; live members notice a rebalance by a heartbeat.
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500
# Errors that no retry resolves.
REFUSALS = (
    kafka_errors.AuthenticationFailedError,
    kafka_errors.AuthenticationMethodNotSupported,
    kafka_errors.ClusterAuthorizationFailedError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.IllegalSaslStateError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.IncompatibleBrokerVersion,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.UnsupportedVersionError,
)

handle_closed_transports()
# Commands have no log: Python would print aiokafka's warnings beside their own errors. A role's log has them.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

# Close tasks that run past their timeout; the event loop itself keeps only weak references to tasks.
_closing: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The cluster's address and credentials.

    Attributes:
        bootstrap_servers: host:port, several separated by commas.
        security: extra settings of every client (`security_protocol`, `sasl_…`, `ssl_context`).
        append_timeout_ms: the maximal time of one append, retries included.
    """

    bootstrap_servers: str
    security: Mapping[str, Any] = field(default_factory=dict)
    append_timeout_ms: int = 10_000

    def client(self) -> AIOKafkaClient:
        """A plain client, for metadata and offsets."""
        return AIOKafkaClient(
            bootstrap_servers=self.bootstrap_servers, request_timeout_ms=10_000, **self.security
        )

    def producer(self) -> AIOKafkaProducer:
        """An idempotent producer, whose batches are acknowledged only when every replica has them."""
        return AIOKafkaProducer(
            bootstrap_servers=self.bootstrap_servers,
            enable_idempotence=True,
            acks="all",
            linger_ms=0,
            compression_type=None,
            max_batch_size=MAX_MESSAGE_BYTES,
            max_request_size=MAX_MESSAGE_BYTES,
            request_timeout_ms=self.append_timeout_ms,
            **self.security,
        )

    def consumer(self, **settings: Any) -> AIOKafkaConsumer:
        """A consumer that never commits and never chooses an offset by itself."""
        defaults: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "isolation_level": "read_committed",
            # Answer at the first byte. A fetch in flight names fixed partitions, so a partition that is resumed
            # meanwhile waits for its end: hence less than aiokafka's 500 ms.
            "fetch_min_bytes": 1,
            "fetch_max_wait_ms": 200,
            "max_partition_fetch_bytes": 2 * MAX_MESSAGE_BYTES,
            # Longer than a rebalance can take, since the broker answers a join only at its end.
            "request_timeout_ms": 15_000,
            "max_poll_records": MAX_RECORDS,
        }
        return AIOKafkaConsumer(**{**defaults, **settings, **self.security})

    def group_consumer(self, group: str, instance: str, assignor: type) -> AIOKafkaConsumer:
        """A consumer whose partitions a group assigns; `log.kafka.member` explains the use of its name."""
        return self.consumer(
            group_id=group,
            group_instance_id=instance,
            client_id=instance,
            partition_assignment_strategy=(assignor,),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            # A worker that folds a long partition does not poll meanwhile; its supervisor detects a worker
            # that hangs.
            max_poll_interval_ms=2**31 - 1,
        )

    def translate(
        self, error: Exception, topic: str = "", consumer: AIOKafkaConsumer | None = None
    ) -> LogError:
        """The typed error for an error of aiokafka; for a damaged record, with its place in the consumer."""
        reason = f"{type(error).__name__} {error}".strip()
        if isinstance(error, LogError):
            return error
        if isinstance(error, kafka_errors.UnknownTopicOrPartitionError | kafka_errors.InvalidTopicError):
            return TopicMissing(topic)
        if isinstance(error, kafka_errors.TopicAuthorizationFailedError):
            return TopicForbidden(self.bootstrap_servers, reason)
        if isinstance(error, REFUSALS):
            return LogRefused(self.bootstrap_servers, reason)
        if consumer is not None and is_damage(error):
            return LogDamaged(damage(consumer, error))
        if is_failure(error):
            return LogFailing(self.bootstrap_servers, failure(topic or self.bootstrap_servers, error))
        return LogUnreachable(self.bootstrap_servers, reason)


async def start(client: AIOKafkaConsumer | AIOKafkaProducer, settings: KafkaSettings) -> None:
    """Start a client; if it does not start, close it and raise the reason.

    Raises:
        LogUnreachable: the cluster did not answer in time.
        LogRefused: the broker refused the connection.
    """
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await client.start()
    except BaseException as error:
        await stop(client)
        if isinstance(error, kafka_errors.KafkaError | OSError | TimeoutError):
            raise settings.translate(error) from error
        raise


async def stop(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    """Stop a client within about two seconds; the rest ends by itself in the background."""
    connections = client.client if isinstance(client, AIOKafkaProducer) else client._client
    await finish(_stop_and_disconnect(client, connections))


async def finish(closing: Coroutine[Any, Any, None]) -> None:
    """Wait a bounded time for a close; it continues in the background after that, or if the caller is cancelled."""
    task = asyncio.ensure_future(closing)
    _closing.add(task)
    task.add_done_callback(_closed)
    await asyncio.wait({task}, timeout=CLOSE_TIMEOUT_S)


def _closed(task: asyncio.Task[None]) -> None:
    _closing.discard(task)
    if not task.cancelled() and (error := task.exception()):
        logger.warning("closing a Kafka client failed: %s: %s", type(error).__name__, error)


async def _stop_and_disconnect(
    client: AIOKafkaConsumer | AIOKafkaProducer, connections: AIOKafkaClient
) -> None:
    # aiokafka's fetcher awaits tasks that it cancelled; a task that sleeps after an error then ends stop() with a
    # CancelledError before the sockets are closed.
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S * 0.75):
            await client.stop()
    except (asyncio.CancelledError, TimeoutError) as error:
        logger.info(
            "a Kafka client did not stop by itself (%s): cutting its connections", type(error).__name__
        )
    finally:
        await connections.close()
