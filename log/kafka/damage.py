"""Damage of Kafka's own files: how to distinguish it from an unreachable Kafka, and where in the log it is.

A batch has a checksum, which the client verifies when it reads. If the broker itself cannot read or write, it only
answers that it failed: the client raises that for a batch that is sent, but retries for ever when it reads.
"""

from __future__ import annotations

import inspect

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CorruptRecordException, KafkaStorageError, UnknownError

_RESTORE = (
    "restore the log from a backup; docs/operations.md (Damaged files) says what can be rebuilt instead"
)


def is_damage(error: BaseException) -> bool:
    """Returns True if a damaged batch was read."""
    return isinstance(error, CorruptRecordException)


def is_failure(error: BaseException) -> bool:
    """Returns True if the broker answers but fails internally: its files or its disk may be damaged."""
    return isinstance(error, CorruptRecordException | KafkaStorageError | UnknownError)


def damage(consumer: AIOKafkaConsumer, error: BaseException) -> str:
    """One sentence on the batch that a consumer could not read: its place, and what to do."""
    where = _where(consumer)
    said = f"A record of the log{f' in {where}' if where else ''} is damaged"
    return f"{said} ({_words(error)}): {_RESTORE}."


def failure(where: str, error: BaseException) -> str:
    """One sentence on a broker that answers but fails, and what to do."""
    said = f"Kafka answers but fails at {where} ({_words(error)})"
    return f"{said}: read its own log; if one of its files is damaged, {_RESTORE}."


def stalled(where: str, after_s: float) -> str:
    """One sentence on a broker that sends nothing: it hangs, or it cannot read and the client does not report it."""
    said = f"Nothing came from {where} for {after_s:.0f} s"
    return f"{said}: check that Kafka runs, and read its own log; if one of its files is damaged, {_RESTORE}."


def _where(consumer: AIOKafkaConsumer) -> str:
    """The partition that the consumer has just failed to read, and the offset after its last readable batch."""
    for tp, fetched in consumer._fetcher._records.items():
        # An error of the broker has no batches, and none are left once all records were handed out.
        batches = getattr(fetched, "_partition_records", None)
        if batches is None or batches._records_iterator is None:
            continue
        if inspect.getgeneratorstate(batches._records_iterator) == inspect.GEN_CLOSED:
            return f"{tp.topic}/{tp.partition} at about offset {batches.next_fetch_offset}"
    return ""


def _words(error: BaseException) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
