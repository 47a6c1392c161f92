"""Appends batches to Kafka: one record batch per append, acknowledged by every replica, or its outcome is unknown.

What aiokafka 0.14 does, and what this module does about it:

* `BatchBuilder.append` returns None for a record that does not fit and drops it, but accepts the first record
  whatever its size: both are checked before anything is sent.
* One produce request per broker is in flight at a time. It carries a batch of each partition that has one
  waiting, so appends to several partitions travel together and none overtakes another on its partition.
* An idempotent batch is retried for ever, and can be stuck behind a lost one (issue 1017): hence the timeout.
* A duplicate sequence number is reported as success at offset −1: hence the check of the base offset.
* `send_batch` shields the delivery: cancelling the wait does not stop the batch. Sequence numbers advance when a
  batch is taken for sending, and are never rolled back. So after any failure the producer is abandoned.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed
from aiokafka.producer.message_accumulator import BatchBuilder

from log.errors import AppendFailed, BatchTooLarge
from log.kafka.client import KafkaSettings, finish, start, stop
from log.kafka.damage import failure, is_failure
from log.places import TopicPartition
from schemas.record import OutRecord
from schemas.topics import MAX_MESSAGE_BYTES

SENDER_CANCELS = 10


class AppendedBatch(NamedTuple):
    """The base offset of a batch and its timestamp, which is the broker's on a topic with LogAppendTime."""

    offset: int
    at_ms: int


class KafkaAppender:
    """See `Appender`. Make one with `open_appender`."""

    def __init__(
        self, producer: AIOKafkaProducer, timeout_ms: int, forget: Callable[["KafkaAppender"], None]
    ) -> None:
        self._producer = producer
        self._timeout_ms = timeout_ms
        self._forget = forget
        self._spoiled = ""
        self._abandoned = False

    @property
    def is_spoiled(self) -> bool:
        """Returns True if the appender refuses every further append."""
        return bool(self._spoiled)

    async def append(self, tp: TopicPartition, records: Sequence[OutRecord]) -> int:
        """See `Appender.append`."""
        return (await self.land(tp, records)).offset

    async def land(self, tp: TopicPartition, records: Sequence[OutRecord]) -> AppendedBatch:
        """Append as `append` does; returns the batch's offset and the broker's time."""
        if self._spoiled:
            raise AppendFailed(tp, self._spoiled)
        batch = _batch_of(self._producer, tp, records)
        try:
            landed = await self._deliver(tp, batch)
        except asyncio.CancelledError:
            self._spoiled = "an append was cancelled"
            raise
        except TimeoutError as error:
            raise self._spoil(tp, f"not acknowledged within {self._timeout_ms} ms") from error
        except Exception as error:
            # Not only KafkaError: a partition that does not exist raises an AssertionError.
            said = failure(str(tp), error) if is_failure(error) else f"{type(error).__name__} {error}".strip()
            raise self._spoil(tp, said) from error
        if landed.offset < 0:
            raise self._spoil(tp, "acknowledged without an offset")
        return landed

    async def abandon(self) -> None:
        """See `Appender.abandon`."""
        if self._abandoned:
            return
        self._abandoned = True
        self._forget(self)
        if self._spoiled:
            await finish(_give_up(self._producer))
        else:
            self._spoiled = "it was abandoned"
            await stop(self._producer)

    async def _deliver(self, tp: TopicPartition, batch: BatchBuilder) -> AppendedBatch:
        async with asyncio.timeout(self._timeout_ms / 1000):
            delivery = await self._producer.send_batch(batch, tp.topic, partition=tp.partition)
            metadata = await delivery
        return AppendedBatch(int(metadata.offset), int(metadata.timestamp))

    def _spoil(self, tp: TopicPartition, reason: str) -> AppendFailed:
        self._spoiled = self._spoiled or reason
        return AppendFailed(tp, reason)


async def open_appender(
    settings: KafkaSettings, forget: Callable[[KafkaAppender], None] = lambda _: None
) -> KafkaAppender:
    """A connected appender with a producer id of its own.

    Args:
        settings: the cluster's address and credentials.
        forget: called when the appender is abandoned.

    Raises:
        LogUnreachable: the cluster does not answer.
        LogRefused: the broker does not permit writing.
    """
    producer = settings.producer()
    await start(producer, settings)
    return KafkaAppender(producer, settings.append_timeout_ms, forget)


def _batch_of(producer: AIOKafkaProducer, tp: TopicPartition, records: Sequence[OutRecord]) -> BatchBuilder:
    if not records:
        raise ValueError("a batch needs at least one record")
    batch = producer.create_batch()
    for record in records:
        headers = list(record.headers)
        if batch.append(timestamp=None, key=record.key, value=record.value, headers=headers) is None:
            raise _too_large(tp, records)
    if batch.size() > MAX_MESSAGE_BYTES:
        raise _too_large(tp, records)
    batch.close()
    return batch


def _too_large(tp: TopicPartition, records: Sequence[OutRecord]) -> BatchTooLarge:
    return BatchTooLarge(tp, sum(record.size_bytes() for record in records))


async def _give_up(producer: AIOKafkaProducer) -> None:
    """Stop a spoiled producer without sending the batches that it still has.

    `AIOKafkaProducer.stop` first waits until everything is delivered, which may be never, and would retry the
    lost batch all that time. So: 1 fail these batches, so that nothing waits for them · 2 end the sender, so that
    nothing more is sent and no request is awaited · 3 close the connections.
    """
    accumulator, sender = producer._message_accumulator, producer._sender.sender_task
    batches = [*chain.from_iterable(accumulator._batches.values()), *accumulator._pending_batches]
    accumulator.fail_all(ProducerClosed())
    for batch in batches:
        batch.future.exception()
        batch._drain_waiter.exception()
    for _ in range(SENDER_CANCELS):
        # The first cancellation ends the sender's loop, each further one a request that it then awaits.
        sender.cancel()
        await asyncio.sleep(0)
    await producer.stop()
