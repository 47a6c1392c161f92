"""Damage of Kafka's own files: how it is told from a Kafka that is away, and where in the log it lies.

A batch has a checksum, which the client looks at as it reads. Of what the broker itself cannot read or write it only
says that it failed; the client raises that for a batch that is sent, and tries again without end where one is read.
"""

from __future__ import annotations

import inspect

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CorruptRecordException, KafkaStorageError, UnknownError

_RESTORE = (
    "restore the log from a backup; docs/operations.md (Damaged files) says what can be made again instead"
)


def is_damage(error: BaseException) -> bool:
    """Whether a batch was read that is not as it was written."""
    return isinstance(error, CorruptRecordException)


def is_failure(error: BaseException) -> bool:
    """Whether the broker answers, but fails by itself: its files may be damaged or its disk may be broken."""
    return isinstance(error, CorruptRecordException | KafkaStorageError | UnknownError)


def damage(consumer: AIOKafkaConsumer, error: BaseException) -> str:
    """One sentence on the batch that a consumer could not read: where it is, and what to do."""
    where = _where(consumer)
    said = f"A record of the log{f' in {where}' if where else ''} is damaged"
    return f"{said} ({_words(error)}): {_RESTORE}."


def failure(where: str, error: BaseException) -> str:
    """One sentence on a broker that answers and fails, and what to do."""
    said = f"Kafka answers but fails at {where} ({_words(error)})"
    return f"{said}: read its own log; where a file of it is damaged, {_RESTORE}."


def stalled(where: str, after_s: float) -> str:
    """One sentence on a broker from which nothing comes: it hangs, or cannot read and the client tells nobody."""
    said = f"Nothing came from {where} for {after_s:.0f} s"
    return f"{said}: see that Kafka runs, and read its own log; where a file of it is damaged, {_RESTORE}."


def _where(consumer: AIOKafkaConsumer) -> str:
    """The partition whose batches the consumer has just given up to read, and the offset after what it could read."""
    for tp, fetched in consumer._fetcher._records.items():
        # There are none in an error that the broker told, and none left once everything was handed out.
        batches = getattr(fetched, "_partition_records", None)
        if batches is None or batches._records_iterator is None:
            continue
        if inspect.getgeneratorstate(batches._records_iterator) == inspect.GEN_CLOSED:
            return f"{tp.topic}/{tp.partition} at about offset {batches.next_fetch_offset}"
    return ""


def _words(error: BaseException) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
