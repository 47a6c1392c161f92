"""The end of a heart: its thread is gone before its process goes on, whatever the broker does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from log.kafka.voice import KafkaVoice
from vitals.heart import JOIN_WITHIN_S, Heart
from vitals.pulse import Pulse

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def silent_broker() -> Iterator[socket.socket]:
    """A port that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        yield listening


def voice_to(listening: socket.socket) -> KafkaVoice:
    host, port = listening.getsockname()
    return KafkaVoice(f"{host}:{port}", {}, "placet.heartbeats")


def hearts() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "heart"]


def test_stop_before_a_silent_broker_ends_the_thread(silent_broker: socket.socket) -> None:
    heart = Heart(Pulse("decider", "d1"), voice_to(silent_broker), None)
    heart.start()
    connection, _ = silent_broker.accept()
    with connection:
        heart.stop()
    assert hearts() == []


class _VoiceThatHangs(KafkaVoice):
    """One whose connection cannot be let go of, as on a machine that is overloaded."""

    async def close(self) -> None:
        await super().close()
        await asyncio.sleep(10 * JOIN_WITHIN_S)


def test_stop_gives_up_a_farewell_that_takes_too_long() -> None:
    heart = Heart(Pulse("decider", "d1"), _VoiceThatHangs("127.0.0.1:9", {}, "placet.heartbeats"), None)
    heart.start()
    heart.stop()
    assert hearts() == []


class _ProducerThatCancels:
    """Ends its `stop` as aiokafka does where the task of its own that it awaits was cancelled."""

    def __init__(self) -> None:
        self.client = self
        self.is_closed = False

    async def stop(self) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    async def close(self) -> None:
        self.is_closed = True


async def test_close_outlives_a_cancellation_that_is_the_clients_own() -> None:
    voice, producer = KafkaVoice("127.0.0.1:9", {}, "placet.heartbeats"), _ProducerThatCancels()
    voice._producer = producer
    await voice.close()
    assert producer.is_closed
