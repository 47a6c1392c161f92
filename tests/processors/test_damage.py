"""A Kafka that answers and fails by itself: a processor says at which topic, and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException, KafkaConnectionError, UnknownError

from host.errors import EXIT_UNREACHABLE, EXIT_USAGE
from host.key_files import KeysUnreadable
from log.errors import (
    FactsDeleted,
    LogChanged,
    LogError,
    LogFailing,
    LogRefused,
    LogUnreachable,
    PartitionsDiffer,
    TopicMissing,
)
from log.places import TopicPartition
from schemas.topics import Topics
from services.processors.errors import exit_code_of
from services.processors.trust import Source, TrustProcessor
from services.processors.worker import _exit_code

SETTINGS: Any = SimpleNamespace(role="trust", bootstrap_servers="127.0.0.1:9")


def processor_whose_producer(raises: Exception) -> TrustProcessor:
    async def acknowledged() -> None:
        raise raises

    async def send(*args: Any, **settings: Any) -> Any:
        return acknowledged()

    app = SimpleNamespace(producer=SimpleNamespace(send=send))
    lease: Any = SimpleNamespace(check=lambda: None)
    return TrustProcessor(app, Source(Topics(), "id"), {}, lease)


async def test_statistics_that_kafka_cannot_take_name_their_topic_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record: Any = SimpleNamespace(partition=0)
    monkeypatch.setattr(
        "services.processors.trust.trust_record",
        lambda record: SimpleNamespace(key=b"k", value=b"v", headers=()),
    )
    with pytest.raises(LogFailing, match=r"fails at placet\.trust \(UnknownError\): read its own log"):
        await processor_whose_producer(UnknownError())._write([record])
    with pytest.raises(KafkaConnectionError):
        await processor_whose_producer(KafkaConnectionError())._write([record])


def test_crash_of_a_damaged_record_ends_with_what_to_do() -> None:
    crashed = CorruptRecordException("Invalid CRC - placet.executions/0")
    with pytest.raises(LogFailing, match=r"Invalid CRC - placet\.executions/0.*restore the log") as failed:
        _exit_code(SystemExit(1), crashed, SETTINGS)
    assert exit_code_of(failed.value) == EXIT_UNREACHABLE


def test_crash_over_keys_that_cannot_be_read_ends_with_their_sentence() -> None:
    with pytest.raises(KeysUnreadable, match="restore") as failed:
        _exit_code(SystemExit(1), KeysUnreadable("deciders.json is damaged: restore it"), SETTINGS)
    assert exit_code_of(failed.value) == EXIT_USAGE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LogUnreachable("127.0.0.1:9", "nobody answers"), EXIT_UNREACHABLE),
        (LogRefused("127.0.0.1:9", "no rights"), EXIT_UNREACHABLE),
        (TopicMissing("placet.trust"), EXIT_UNREACHABLE),
        (LogChanged("The log", "is another one"), EXIT_USAGE),
        (FactsDeleted(TopicPartition("placet.executions", 0), 1, 2), EXIT_USAGE),
        (PartitionsDiffer("placet.trust", 3, 4), EXIT_USAGE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, LogError) else "",
)
def test_exit_code_of_what_the_log_could_not_do_says_who_acts(error: LogError, code: int) -> None:
    assert exit_code_of(error) == code
