"""A Kafka that answers and fails by itself: a processor says at which topic, and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException, KafkaConnectionError, UnknownError

from schemas.topics import Topics
from services.processors.errors import EXIT_UNREACHABLE, LogFails
from services.processors.trust import Source, TrustProcessor
from services.processors.worker import _exit_code


def processor_whose_producer(raises: Exception) -> TrustProcessor:
    async def acknowledged() -> None:
        raise raises

    async def send(*args: Any, **settings: Any) -> Any:
        return acknowledged()

    app = SimpleNamespace(producer=SimpleNamespace(send=send))
    lease: Any = SimpleNamespace(check=lambda: None)
    return TrustProcessor(app, Source(Topics(), "id"), {}, lease, lambda: None)


async def test_statistics_that_kafka_cannot_take_name_their_topic_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record: Any = SimpleNamespace(partition=0)
    monkeypatch.setattr(
        "services.processors.trust.trust_record",
        lambda record: SimpleNamespace(key=b"k", value=b"v", headers=()),
    )
    with pytest.raises(LogFails, match=r"fails at placet\.trust \(UnknownError\): read its own log"):
        await processor_whose_producer(UnknownError())._write([record])
    with pytest.raises(KafkaConnectionError):
        await processor_whose_producer(KafkaConnectionError())._write([record])


def test_crash_of_a_damaged_record_ends_with_what_to_do() -> None:
    crashed = CorruptRecordException("Invalid CRC - placet.executions/0")
    with pytest.raises(LogFails, match=r"Invalid CRC - placet\.executions/0.*restore the log") as failed:
        _exit_code(SystemExit(1), crashed, "trust")
    assert failed.value.exit_code == EXIT_UNREACHABLE
